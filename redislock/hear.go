package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/callbacks"
)

// An ear listens on one channel. The Store makes an ear at first need and keeps the ear
// until Close. A Store has one ear; in a cluster, a further ear for every bucket in which
// the Store has ever waited.
type ear struct {
	store   *Store
	channel Channel
	wakes   callbacks.Wakes // by the id of the claim

	// Guarded by Store.mu.
	ready bool          // the server has confirmed
	err   error         // why ready is false, from the last try
	tried chan struct{} // closed when a try has failed or the server has confirmed
}

var errSilent = errors.New("the subscription has not been confirmed yet")

// firstTry is how long an Acquire may be held up by the first try to listen. firstPause
// and lastPause bound the pauses between two tries.
const (
	firstTry   = 100 * time.Millisecond
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// lossChannel is the channel for a Store's losses. Any client may send there. In a
// cluster the message goes to every node, but Break is rare.
func (s *Store) lossChannel(client string) Channel {
	return Channel{Name: s.names.prefix + client}
}

// grantChannel is the channel for this Store's grants. In a cluster the channel lies in
// the slot of the key, so only the slot's node has to know the channel.
func (s *Store) grantChannel(key string) Channel {
	if s.conn.Cluster() {
		return Channel{Name: s.names.prefix + bucket(key) + s.client, Sharded: true}
	}
	return s.losses
}

// pushed tells a script how to reach this Store about a key: "" while the Store does not
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

// listen returns the ear of a channel, and makes the ear if necessary. listen waits until
// the server has confirmed, ctx ends or the first try has failed.
func (s *Store) listen(ctx context.Context, c Channel) (*ear, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	e := s.ears[c]
	if e == nil {
		e = &ear{store: s, channel: c, tried: make(chan struct{})}
		s.ears[c] = e
		s.running.Go(e.run)
	}
	settled, err, tried := e.settled(), e.err, e.tried
	s.mu.Unlock()
	if settled {
		return e, err
	}
	select {
	case <-tried:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.ready && e.err == nil {
		e.err = errSilent // The next call does not wait.
	}
	return e, e.err
}

// settled reports whether the last try has been confirmed or has failed. Call settled
// with Store.mu held.
func (e *ear) settled() bool { return e.ready || e.err != nil }

func (e *ear) run() {
	ctx := e.store.ctx
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := e.store.conn.Listen(ctx, e.channel, e.confirmed, e.hear)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("subscribe to channel %s: %w", e.channel.Name, err)
		}
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

// confirmed wakes all waiters of the channel, because messages sent before the
// subscription are missed.
func (e *ear) confirmed() {
	e.store.mu.Lock()
	e.ready, e.err = true, nil
	e.release()
	e.store.mu.Unlock()
	e.wakes.WakeAll()
}

// lost records the end of a try. If the server had confirmed, the outcome stays open: the
// next try shows whether only the connection was lost.
func (e *ear) lost(err error) {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	if e.ready && e.store.ctx.Err() == nil {
		e.ready, e.err, e.tried = false, nil, make(chan struct{})
		return
	}
	e.ready, e.err = false, err
	if err == nil {
		e.err = errClosed
	}
	e.release()
}

// release wakes the callers of listen that wait for the outcome of a try.
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
		e.heardGrant(rest)
	case "l":
		e.store.heardLoss(rest)
	}
}

func (e *ear) heardGrant(text string) {
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
	e.wakes.Wake(fields[3], driver.Grant{OK: true, Fence: fence, Span: span, TTL: duration(ttl)})
}

func lossMessage(key, id string) string { return "l " + strconv.Itoa(len(id)) + " " + id + key }

func (s *Store) heardLoss(text string) {
	length, rest, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return
	}
	id, key := rest[:n], rest[n:]
	s.lost.Tell(key, id, driver.ErrBroken)
}
