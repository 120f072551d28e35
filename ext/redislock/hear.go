package redislock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// An ear listens on one channel. It is made when it is first needed and lasts
// until Close: a store has one, of a cluster one for each bucket in which it
// has ever waited.
type ear struct {
	store   *Store
	channel Channel

	// Guarded by Store.mu.
	ready bool          // the server has confirmed
	err   error         // why it is not, of the last try
	tried chan struct{} // closed when a try has ended or the server has confirmed
}

var errSilent = errors.New("the subscription has not been confirmed yet")

// Pauses between two tries to listen, and how long a claim that does not wait
// is held up for the first.
const (
	firstTry   = 100 * time.Millisecond
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// The channel on which this Store learns of its losses: any client may send
// there. In a cluster that is a message to every node, but breaking is rare.
func (s *Store) lossChannel(client string) Channel {
	return Channel{Name: s.names.prefix + client}
}

// The channel on which this Store learns of its grants. In a cluster it lies in
// the slot of the key, so that only the node there has to know it.
func (s *Store) grantChannel(key string) Channel {
	if s.conn.Cluster() {
		return Channel{Name: s.names.prefix + bucket(key) + s.client, Sharded: true}
	}
	return s.losses
}

// pushed is how a script reaches this Store about a key: "" while it does not
// listen.
func (s *Store) pushed(key string) string {
	c := s.grantChannel(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.ears[c]; e == nil || !e.ready {
		return ""
	}
	if c.Sharded {
		return "s" + c.Name
	}
	return "p" + c.Name
}

// listen makes sure that somebody listens on a channel, and waits until the
// server has confirmed, ctx ends or the first try has failed.
func (s *Store) listen(ctx context.Context, c Channel) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errClosed
	}
	e := s.ears[c]
	if e == nil {
		e = &ear{store: s, channel: c, tried: make(chan struct{})}
		s.ears[c] = e
		s.running.Go(e.run)
	}
	settled, err := e.settled(), e.err
	s.mu.Unlock()
	if settled {
		return err
	}
	select {
	case <-e.tried:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.ready && e.err == nil {
		e.err = errSilent // The next call does not wait.
	}
	return e.err
}

// settled reports whether it is known whether the server has confirmed. Call it
// with Store.mu held.
func (e *ear) settled() bool { return e.ready || e.err != nil }

func (e *ear) run() {
	ctx := e.store.ctx
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := e.store.conn.Listen(ctx, e.channel, e.confirmed, e.hear)
		e.lost(err)
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		pause = min(2*pause, lastPause)
	}
}

// confirmed wakes all who wait on the channel: what was sent before is missed.
func (e *ear) confirmed() {
	s := e.store
	s.mu.Lock()
	e.ready, e.err = true, nil
	e.release()
	var wakes []func(driver.Grant)
	for _, set := range s.watches {
		for w := range set {
			if w.channel == e.channel {
				wakes = append(wakes, w.wake)
			}
		}
	}
	s.mu.Unlock()
	for _, wake := range wakes {
		wake(driver.Grant{})
	}
}

func (e *ear) lost(err error) {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	e.ready, e.err = false, err
	if err == nil {
		e.err = errClosed
	}
	e.release()
}

// release lets those go on who wait for the first try.
func (e *ear) release() {
	select {
	case <-e.tried:
	default:
		close(e.tried)
	}
}

// hear reads a message: a grant, or a loss.
//
//	g FENCE SPAN TTL ID
//	l LENGTH ID KEY
func (e *ear) hear(message string) {
	kind, rest, _ := strings.Cut(message, " ")
	switch kind {
	case "g":
		e.store.heardGrant(rest)
	case "l":
		e.store.heardLoss(rest)
	}
}

func (s *Store) heardGrant(text string) {
	fields := strings.SplitN(text, " ", 4)
	if len(fields) != 4 {
		return
	}
	fence, err1 := strconv.ParseUint(fields[0], 10, 64)
	span, err2 := strconv.Atoi(fields[1])
	ttl, err3 := strconv.ParseInt(fields[2], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return
	}
	s.wake(fields[3], driver.Grant{OK: true, Fence: fence, Span: span, TTL: duration(ttl)})
}

func lossMessage(key, id string) string { return "l " + strconv.Itoa(len(id)) + " " + id + key }

func (s *Store) heardLoss(text string) {
	length, rest, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return
	}
	id, key := rest[:n], rest[n:]
	s.mu.Lock()
	var told []*notice
	for n := range s.notices {
		told = append(told, n)
	}
	s.mu.Unlock()
	for _, n := range told {
		n.lost(key, id, driver.ErrBroken)
	}
}
