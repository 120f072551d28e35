package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	unanswered "github.com/holdfast-go/holdfast/internal/silence"
)

// A session is a session with the server, from its opening to its end. The fields except
// gone and wakeUp are guarded by Store.mu.
type session struct {
	conn     Conn
	limit    time.Duration // of silence, as last sent; a longer silence ends the session
	sure     time.Duration // the limit is no less, even if pings are unanswered
	began    time.Time     // when the session was open
	answered time.Time     // when the latest answered request was sent
	sent     time.Time     // when the last ping was sent
	pings    int           // so far
	wakesAt  time.Time     // when keepAlive wakes next
	wakeUp   chan struct{} // wakes keepAlive now
	gone     chan struct{} // closed when the session has ended
	err      error         // why the session has ended, or is being ended
}

// An opening is an attempt to open a session, on behalf of every waiting call.
type opening struct {
	done chan struct{}
	err  error
}

// openLimit bounds an attempt to open a session. An attempt does not belong to one call: if
// the first call gives up, the attempt goes on for the next call.
const openLimit = 10 * time.Second

// session returns the session, and opens it if there is none.
func (s *Store) session(ctx context.Context, c driver.Claim) (*session, error) {
	for {
		s.mu.Lock()
		k, o := s.current, s.opening
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed
		case k == nil && o == nil:
			o = &opening{done: make(chan struct{})}
			s.opening = o
			s.background.Go(func() { s.open(o, c.Owner, silence(s.granted(c.TTL))) })
		}
		ending := k != nil && k.err != nil
		s.mu.Unlock()
		if ending {
			select {
			case <-k.gone:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if k != nil {
			return k, nil
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if o.err != nil {
			return nil, o.err
		}
	}
}

// open opens a session and keeps the session until its end.
func (s *Store) open(o *opening, owner string, limit time.Duration) {
	ctx, cancel := context.WithTimeout(s.closing, openLimit)
	defer cancel()
	k := &session{limit: limit, sure: limit, answered: s.now(), wakeUp: make(chan struct{}, 1), gone: make(chan struct{})}
	k.sent = k.answered
	conn, err := s.server.Open(ctx, owner, limit, Events{
		Ending: func(err error) { s.ending(k, err) },
		Lost:   func(err error) { s.lose(k, err) },
		Free:   s.wake,
	})
	s.mu.Lock()
	k.conn = conn
	switch {
	case err != nil && s.closed:
		err = errClosed
	case err != nil:
		// The limit of the opening is not the limit of a caller.
		err = unanswered.Of(err, s.now().Sub(k.sent))
	case k.err != nil:
		err = k.err
	case s.closed:
		conn.Close(errClosed)
		err = errClosed
	default:
		s.current, k.began = k, s.now()
	}
	s.opening, o.err = nil, err
	close(o.done)
	s.mu.Unlock()
	if conn != nil {
		s.keepAlive(k)
	}
}

// ending ends the claims of a session before the server hears that the session ends.
func (s *Store) ending(k *session, err error) {
	s.mu.Lock()
	lost := s.endLocked(k, err)
	s.mu.Unlock()
	lost()
}

// lose ends the claims of an ended session.
func (s *Store) lose(k *session, err error) {
	s.mu.Lock()
	if s.current == k {
		s.current = nil
	}
	lost := s.endLocked(k, err)
	var wakes []func(driver.Grant)
	for name := range s.watches {
		wakes = append(wakes, s.watchingLocked(name)...)
	}
	s.mu.Unlock()
	lost() // before a waiter is woken
	wakeAll(wakes)
	close(k.gone)
}

// endLocked ends the claims of a session. The caller calls lost without mu, which notifies the
// owners.
func (s *Store) endLocked(k *session, err error) (lost func()) {
	k.err = cmp.Or(k.err, err)
	why := fmt.Errorf("%w: the session with the server has ended: %w", driver.ErrLost, err)
	var owners []driver.Claim
	for _, l := range s.locks {
		switch {
		case l.session != k:
		case l.state == asking && !l.cancelled:
			l.failed = err
			s.dropLocked(l, why)
		default:
			if l.state == held {
				l.changed = make(chan struct{})
				owners = append(owners, l.claim)
			}
			s.dropLocked(l, why)
		}
	}
	if s.closed {
		owners = nil // Close has ended the session.
	}
	return func() {
		for _, c := range owners {
			s.losses.Tell(c.Key, c.ID, why)
		}
	}
}

// closeLocked ends a session that has no claims any more, or whose Store is closed. The server may
// grant locks until it hears of the end. These grants do not count.
func (s *Store) closeLocked(k *session, why error) {
	k.err = why
	k.conn.Close(why)
}

// await waits until the channel is closed by an answer, or ctx ends.
func (k *session) await(ctx context.Context, changed <-chan struct{}) error {
	k.conn.Help(changed)
	select {
	case <-changed:
		return nil // The usual case; waiting for a context costs more.
	default:
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// wakeBy wakes keepAlive now if keepAlive would wake later than next.
func (k *session) wakeBy(next time.Time) {
	if !next.Before(k.wakesAt) {
		return
	}
	k.wakesAt = next
	select {
	case k.wakeUp <- struct{}{}:
	default:
	}
}

// pingLocked sends one ping, and tells the server how long the session may be silent.
func (s *Store) pingLocked(k *session, now time.Time, limit time.Duration, done func(error)) {
	k.pings++
	n := k.pings
	k.sent, k.limit, k.sure = now, limit, min(k.sure, limit)
	k.conn.Ping(limit, func(err error) {
		if err == nil {
			s.mu.Lock()
			k.answered = later(k.answered, now)
			if n == k.pings {
				k.sure = limit
			}
			s.mu.Unlock()
		}
		done(err)
	})
}

// keepAlive serves a session until its end: it pings for all claims, releases expired
// claims, and closes a session that has certainly ended.
func (s *Store) keepAlive(k *session) {
	timer := s.clock.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.doDue(k).Sub(s.now()))
		select {
		case <-timer.C:
		case <-k.wakeUp:
		case <-k.gone:
			return
		}
	}
}

// errSilent ends a session when the server does not answer.
var errSilent = errors.New("the server has not answered for as long as it keeps a silent session")

// doDue does the due work of keepAlive and returns when to wake next.
func (s *Store) doDue(k *session) (next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	next = now.Add(time.Hour)
	var longest time.Duration
	claimed := false // until next
	for _, l := range s.locks {
		if l.session != k {
			continue
		}
		longest = max(longest, l.claim.TTL)
		switch {
		case l.state != held:
		case !l.until.After(now):
			l.expired = true
			s.freeLocked(l)
		default:
			claimed = true
			if l.until.Before(next) {
				next = l.until
			}
		}
	}
	over := later(k.answered, k.began).Add(k.limit)
	if !over.After(now) {
		if !claimed { // else a longer limit may still stand
			s.closeLocked(k, errSilent)
			k.wakesAt = next
			return next
		}
		over = next
	}
	last := later(k.answered, k.sent)
	if !last.Add(pause(k.limit)).After(now) {
		limit := k.limit
		if longest > 0 {
			limit = silence(longest)
		}
		s.pingLocked(k, now, limit, func(error) {})
		last = now
	}
	for _, due := range []time.Time{over, last.Add(pause(k.limit))} {
		if due.Before(next) {
			next = due
		}
	}
	k.wakesAt = next
	return next
}
