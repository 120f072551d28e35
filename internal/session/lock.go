package session

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
)

// A lock is an entry of the table: a lock that this process holds, requests or releases.
// The table has at most one entry of a name. The fields are guarded by Store.mu, and do
// not change after the lock has left the table.
type lock struct {
	name    string
	session *session
	claim   driver.Claim // the TTL is as granted
	span    int          // how many tokens the lock gets
	state   state
	token   uint64
	begin   time.Time // of the Acquire that sent the request
	since   time.Time
	until   time.Time // the owner has to renew before

	cancelled bool          // to be freed after the grant
	expired   bool          // released because its owner did not renew it
	changed   chan struct{} // closed when the lock is held or free
	refused   bool          // a different session has the lock
	blocked   error         // why the lock was refused without a request to the server
	failed    error         // why the request failed
	ended     error         // nil after a release, else an ErrLost
}

type state int

const (
	asking state = iota
	held
	freeing
)

// ask requests a lock that this process does not have.
func (s *Store) ask(k *session, name string, a driver.Ask, begin time.Time) *lock {
	a.TTL = s.granted(a.TTL)
	l := &lock{
		name: name, session: k, claim: a.Claim, begin: begin, until: begin.Add(a.TTL), changed: make(chan struct{}),
		span: min(max(a.Span, 1), s.terms.Span), // The server draws Terms.Span tokens for each lock.
	}
	s.locks[name] = l
	if k.limit < silence(a.TTL) {
		s.pingLocked(k, begin, silence(a.TTL), func(error) {})
	}
	s.rewatchLocked(k, name)
	k.conn.Try(name, a.Wait, func(token uint64, err error) { s.tried(l, begin, token, err) })
	return l
}

// tried takes the answer to ask.
func (s *Store) tried(l *lock, sent time.Time, token uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[l.name] != l {
		return // lost meanwhile
	}
	switch ending := l.session.err; {
	case ending != nil:
		l.failed = ending
		s.dropLocked(l, driver.ErrLost)
		return
	case errors.Is(err, backoff.ErrResting):
		l.refused, l.blocked = true, err
		s.dropLocked(l, driver.ErrLost)
		return // The server was not asked, so the session may be dead.
	case err != nil:
		l.failed = err
		s.dropLocked(l, driver.ErrLost)
		return
	case token == 0:
		l.refused = true
		s.dropLocked(l, driver.ErrLost)
	case l.cancelled:
		l.state = freeing
		l.session.conn.Free(l.name, func(err error) { s.freed(l, err) })
	default:
		l.state, l.token, l.since = held, token, time.Now()
		close(l.changed)
		l.session.wakeBy(l.until)
	}
	l.session.answered = later(l.session.answered, sent)
}

// dropLocked removes a lock from the table.
func (s *Store) dropLocked(l *lock, why error) {
	delete(s.locks, l.name)
	l.ended = why
	close(l.changed)
}

// freeLocked releases a held lock.
func (s *Store) freeLocked(l *lock) {
	l.state, l.changed = freeing, make(chan struct{})
	l.session.conn.Free(l.name, func(err error) { s.freed(l, err) })
}

// freed takes the answer to free. A later lock of this process may have the name now.
func (s *Store) freed(l *lock, err error) {
	s.mu.Lock()
	var wakes []func(driver.Grant)
	if err == nil && s.locks[l.name] == l {
		var why error
		if l.expired {
			why = driver.ErrLost // also for an owner that releases the lock just now
		}
		s.dropLocked(l, why)
		wakes = s.watchingLocked(l.name)
	}
	s.mu.Unlock()
	wakeAll(wakes)
}

// againLocked grants a claim that is held already, for ttl from begin. againLocked unlocks
// mu meanwhile.
func (s *Store) againLocked(ctx context.Context, l *lock, ttl time.Duration, begin time.Time) (driver.Grant, error) {
	l.claim.TTL = max(l.claim.TTL, ttl)
	err := s.aliveLocked(ctx, l.session, begin, ttl)
	if err := s.extendLocked(l, ttl, begin, err); err != nil {
		return driver.Grant{}, err
	}
	return l.grant(), nil
}

// extendLocked lets a claim stand for ttl from begin, unless the session is not known to
// live by then.
func (s *Store) extendLocked(l *lock, ttl time.Duration, begin time.Time, alive error) error {
	switch {
	case s.locks[l.name] != l && l.ended != nil:
		return l.ended
	case s.locks[l.name] != l || l.state != held:
		return driver.ErrLost
	case alive != nil:
		return alive
	}
	l.claim.TTL, l.until = ttl, begin.Add(ttl)
	l.session.wakeBy(l.until)
	return nil
}

// answer is the result for the claim of this id, which has waited since begin for a lock to
// change. If done is false, the claim has to send a request of its own. done is also false
// if the request was sent for an earlier call: the lock and the session then stand only for
// the TTL from the earlier call.
func (s *Store) answer(l *lock, id string, begin time.Time) (g driver.Grant, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.claim.ID != id:
		return driver.Grant{}, false, nil
	case l.refused || l.cancelled:
		return driver.Grant{Blocked: l.blocked}, true, nil
	case l.failed != nil:
		return driver.Grant{}, true, l.failed
	case l.state != held || l.ended != nil || l.begin.Before(begin):
		return driver.Grant{}, false, nil
	}
	return l.grant(), true, nil
}

func (l *lock) grant() driver.Grant {
	return driver.Grant{OK: true, Fence: l.token, Span: l.span, TTL: l.claim.TTL, Passed: true}
}

// refusal describes the held claim to a second claim.
func (l *lock) refusal(now time.Time) driver.Grant {
	return driver.Grant{Left: max(l.until.Sub(now), 0), Holder: l.holder(now)}
}

func (l *lock) holder(now time.Time) driver.Holder {
	return driver.Holder{
		ID: driver.PublicID(l.claim.ID), Owner: l.claim.Owner, Note: l.claim.Note,
		Fence: l.token, Since: l.since, Left: max(l.until.Sub(now), 0),
		Weight: l.claim.Weight, Limit: l.claim.Limit,
	}
}
