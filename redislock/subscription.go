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

// A subscription receives the messages of one channel. The Store subscribes at first need,
// and stays subscribed until Close. A Store has one subscription; in a cluster, a further
// subscription for every bucket in which the Store has ever waited.
type subscription struct {
	store   *Store
	channel Channel
	wakes   callbacks.Wakes // by the id of the claim

	// Guarded by Store.mu.
	ready bool          // the server has confirmed
	err   error         // why ready is false, from the last try
	tried chan struct{} // closed when a try has failed or the server has confirmed
}

var errUnconfirmed = errors.New("the subscription has not been confirmed yet")

// firstTry is how long an Acquire may wait for the first try to subscribe. An Acquire with less than
// 400 ms waits for a quarter of its time. firstPause and lastPause bound the pauses between two tries.
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
	return s.channel
}

// grantAddress tells a script how to reach this Store about a key: "" while the Store is
// not subscribed.
func (s *Store) grantAddress(key string) string {
	c := s.grantChannel(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.subscriptions[c]; sub == nil || !sub.ready {
		return ""
	}
	if c.Sharded {
		return "s" + c.Name
	}
	return "p" + c.Name
}

// subscribe returns the subscription to a channel, and makes it if there is none. subscribe
// waits until the server has confirmed, ctx ends or the first try has failed.
func (s *Store) subscribe(ctx context.Context, c Channel) (*subscription, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	sub := s.subscriptions[c]
	if sub == nil {
		sub = &subscription{store: s, channel: c, tried: make(chan struct{})}
		s.subscriptions[c] = sub
		s.running.Go(sub.run)
	}
	settled, err, tried := sub.settledLocked(), sub.err, sub.tried
	s.mu.Unlock()
	if settled {
		return sub, err
	}
	select {
	case <-tried:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sub.ready && sub.err == nil {
		sub.err = errUnconfirmed // The next call does not wait.
	}
	return sub, sub.err
}

// settledLocked reports whether the last try has been confirmed or has failed.
func (sub *subscription) settledLocked() bool { return sub.ready || sub.err != nil }

func (sub *subscription) run() {
	ctx := sub.store.ctx
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		err := sub.store.conn.Listen(ctx, sub.channel, sub.confirmed, sub.receive)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("subscribe to channel %s: %w", sub.channel.Name, err)
		}
		sub.ended(err)
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
func (sub *subscription) confirmed() {
	sub.store.mu.Lock()
	sub.ready, sub.err = true, nil
	sub.endTry()
	sub.store.mu.Unlock()
	sub.wakes.WakeAll()
}

// ended records the end of a try. If the server had confirmed, the outcome stays open: the
// next try shows whether only the connection was lost.
func (sub *subscription) ended(err error) {
	sub.store.mu.Lock()
	defer sub.store.mu.Unlock()
	if sub.ready && sub.store.ctx.Err() == nil {
		sub.ready, sub.err, sub.tried = false, nil, make(chan struct{})
		return
	}
	sub.ready, sub.err = false, err
	if err == nil {
		sub.err = errClosed
	}
	sub.endTry()
}

// endTry wakes the callers of subscribe that wait for the outcome of a try.
func (sub *subscription) endTry() {
	select {
	case <-sub.tried:
	default:
		close(sub.tried)
	}
}

// receive takes a message: a grant, or a loss.
//
//	g FENCE SPAN TTL ID
//	l LENGTH ID KEY
func (sub *subscription) receive(message string) {
	kind, rest, _ := strings.Cut(message, " ")
	switch kind {
	case "g":
		sub.receiveGrant(rest)
	case "l":
		sub.store.receiveLoss(rest)
	}
}

func (sub *subscription) receiveGrant(text string) {
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
	sub.wakes.Wake(fields[3], driver.Grant{OK: true, Fence: fence, Span: span, TTL: duration(ttl)})
}

func lossMessage(key, id string) string { return "l " + strconv.Itoa(len(id)) + " " + id + key }

func (s *Store) receiveLoss(text string) {
	length, rest, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > len(rest) {
		return
	}
	id, key := rest[:n], rest[n:]
	s.losses.Tell(key, id, driver.ErrBroken)
}
