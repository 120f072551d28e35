package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A call is one call of Lock on its way to a grant.
type call struct {
	*core
	Request
	ctx   context.Context
	began time.Duration // if a limit or a hook needs that

	reader    *Hold           // to upgrade; nil for a call of Lock
	over      <-chan struct{} // closed when the reader ends
	turn      *turn
	lease     *lease // the requested lease
	contender bool   // waits at the store for the whole queue
	contended bool   // the store is likely to refuse
	waiter    *waiter

	answeredAt time.Duration // when the last answered Acquire was sent, or the first; never before
	refusal    *Refusal      // nil until refused
	seen       time.Duration // of an upgrade: when the queue was last seen; 0: not yet
	failure    error         // of the last Acquire; nil if the store answered

	watch // of a contender
}

func (c *call) run() (*Hold, error) {
	if c.Limited || c.Hooks.timed() {
		c.began = c.now()
	}
	if c.Contexts {
		c.Term.ctx = c.ctx
	}
	c.reportWanted()
	run := c.once
	if c.Most > 0 {
		run = c.retry
	}
	h, err := run()
	if err != nil {
		c.report(c.Hooks.GaveUp, err)
	}
	return h, err
}

// once goes from the turn to the grant.
func (c *call) once() (h *Hold, err error) {
	h, err = c.enter()
	if err != nil {
		return nil, err
	}
	defer c.busy.Done()
	for h == nil && err == nil {
		switch {
		case c.waiter != nil:
			h, err = c.stand()
		case c.contender, c.upgrades() && !c.instant():
			h, err = c.contend()
		default:
			h, err = c.ask()
		}
	}
	if h != nil {
		c.reportLocked(h) // Close waits for the hook
	}
	return h, err
}

// enter takes over a parked claim, or decides whether the call may ask the store at once, as
// the contender or beside it, or joins the queue. A try waits for the release of a parked claim.
func (c *call) enter() (h *Hold, err error) {
	t := c.lock()
	defer c.unlock()
	if c.upgrades() {
		return nil, c.enterUpgrade(t)
	}
	for {
		if t.closed {
			return nil, ErrClosed
		}
		c.turn = t.turn(c.Key)
		if h = c.takeParked(t, c.turn, &c.Request); h != nil {
			return h, nil
		}
		released := c.turn.released()
		if released == nil || !c.instant() {
			break
		}
		if cut := c.awaitLocked(released); cut != nil {
			return nil, cutShort(cut, c.Words.Held(new(Refusal)), nil)
		}
	}
	switch c.turn.enter(c.Terms, c.instant()) {
	case refuse:
		c.refusal = c.refusalLocked(c.turn)
		return nil, c.Words.Held(c.refusal)
	case contend:
		c.contender = true
		c.lease = t.lease(c.turn, c.Terms, c.Owner)
		c.recall(t, true)
	case beside:
		c.lease = t.lease(c.turn, c.Terms, c.Owner)
	case stand:
		c.queueLocked()
	}
	c.busy.Add(1)
	return nil, nil
}

// queueLocked puts the call at the end of the queue.
func (c *call) queueLocked() {
	c.waiter = c.newWaiter(&c.Request)
	c.turn.queue.push(c.waiter)
}

// stand waits in the queue. stand returns a hold that was handed over, an error, or neither
// when the call has become the contender.
func (c *call) stand() (*Hold, error) {
	w := c.waiter
	if err := c.await(w); err != nil {
		return nil, err
	}
	c.waiter = nil
	h, claim, closed := w.hold, w.claim, w.closed
	w.ctx = nil
	c.waiters.Put(w)
	switch {
	case closed:
		return nil, ErrClosed
	case h != nil && h.Err() == nil:
		return h, nil
	case h != nil: // the process was paused for longer than the hold lasts
		c.reportLocked(h)
		_ = h.Unlock()
		c.reportWanted()
		return nil, c.rejoin()
	}
	c.contender, c.answeredAt = true, c.now()
	c.lease = claim
	t := c.lock()
	defer c.unlock()
	if c.lease == nil {
		c.lease = t.lease(c.turn, c.Terms, c.Owner)
		c.recall(t, false)
	} else if _, lost := c.turn.early[c.lease.claim().ID]; lost {
		c.rename(t)
	}
	c.lease.span = c.span()
	return nil, nil
}

// rejoin puts the call back into the queue, at the end.
func (c *call) rejoin() error {
	t := c.lock()
	defer c.unlock()
	if t.closed {
		return ErrClosed
	}
	c.turn = t.turn(c.Key)
	c.queueLocked()
	t.pump(c.turn)
	return nil
}

// await returns nil when the waiter has been called, and otherwise why the waiter has
// left the queue.
func (c *call) await(w *waiter) error {
	var cut error
	var limit <-chan time.Time
	if c.Limited {
		timer := c.clock.NewTimer(c.began + c.Wait - c.now())
		defer timer.Stop()
		limit = timer.C
	}
	for over := false; !over; {
		select {
		case called := <-w.ready:
			if called {
				return nil
			}
			c.reportStuck()
			continue
		case <-c.ctx.Done():
			cut = c.ctx.Err()
		case <-limit:
		}
		over = true
	}
	t := c.lock()
	defer c.unlock()
	if w.called { // just now
		for !<-w.ready { // a report
		}
		return nil
	}
	held, failure := c.refusalLocked(c.turn), c.turn.failure
	unknown := failure != nil && len(c.turn.leases) == 0 && !c.turn.refused() // who holds the key
	c.turn.queue.remove(w)
	t.tidy(c.turn)
	switch {
	case cut != nil && unknown:
		return silence.Cut(cut, failure)
	case cut != nil:
		return cutShort(cut, c.Words.Held(held), failure)
	case unknown:
		return failure
	}
	return c.Words.Held(held)
}

// span is how many tokens a grant should carry: more than one only if somebody waits in
// the queue, or may take over a parked claim, since every token costs the store's clock a
// microsecond.
func (c *call) span() int {
	if c.Exclusive() && !c.NoRenew && (c.turn.queue.len > 0 || c.lease.quick) {
		return driver.MaxSpan
	}
	return 1
}

// maxLate is how many grants in a row may come too late to be of use.
const maxLate = 3

// ask asks the store once, beside the contender if there is one. If the call may wait and
// is refused, it joins the queue.
func (c *call) ask() (*Hold, error) {
	for range maxLate {
		g, sent, err := c.acquire(false)
		if err != nil || !g.OK {
			return nil, c.endTry(g, err)
		}
		if h, err := c.take(g, sent); h != nil || err != nil {
			return h, err
		}
	}
	c.leave()
	return nil, fmt.Errorf("the store's answers came too late for a TTL of %v", c.TTL)
}

// endTry ends a single try; a call that may wait joins the queue.
func (c *call) endTry(g driver.Grant, err error) error {
	switch {
	case err != nil && (c.instant() || errors.Is(err, driver.ErrInvalid) || silence.Ended(c.ctx) != nil):
		c.leave()
		return err
	case c.instant():
		if c.refusal == nil || g.Holder.Owner != "" { // else a try that Wait has cut short
			c.refusal = refusalOf(g)
		}
		if c.upgrades() {
			err = c.lookAhead()
		}
		c.leave()
		return cmp.Or(err, c.Words.Held(c.refusal))
	}
	t := c.lock()
	defer c.unlock()
	c.discard(t)
	c.turn.end(c.Terms)
	c.lease = nil
	c.queueLocked()
	t.pump(c.turn)
	return nil
}

// least is the time that a caller must find in a new hold: half of the TTL. A pushed grant
// is short until it is confirmed, so a second is enough.
func (c *call) least(g driver.Grant) time.Duration {
	if g.TTL < c.TTL {
		return min(c.TTL/2, time.Second)
	}
	return g.TTL / 2
}

// take makes a hold of a grant. It returns neither hold nor error if the grant is too old or
// already lost: then the call must ask again.
func (c *call) take(g driver.Grant, sent time.Duration) (*Hold, error) {
	l := c.lease
	now := c.arrival(sent)
	l.grant(g, sent, now)
	if left, ok := l.remaining(now); ok && left < c.least(g) {
		return nil, nil
	}
	if c.Fenced && g.Fence == 0 {
		c.leave()
		return nil, ErrNotFenced
	}
	if c.upgrades() {
		c.reader.check()
	}
	t := c.lock()
	defer c.unlock()
	if _, lost := c.turn.early[l.claim().ID]; lost {
		c.rename(t)
		return nil, nil
	}
	if t.closed {
		c.end(t)
		return nil, ErrClosed
	}
	if c.upgrades() && c.reader.Ended() != nil {
		c.end(t)
		return nil, c.reader.Ended()
	}
	l.wanted = c.refusal != nil && !c.refusal.Here
	c.turn.end(c.Terms)
	c.turn.admit(l)
	h := newHold(c.core, l, c.Term, now)
	if c.upgrades() {
		h.reader = c.reader
		c.reader.upgrade.Store(h)
	}
	c.keep(t, l, now)
	if c.contender {
		c.turn.retire()
		t.pump(c.turn)
	}
	return h, nil
}

// leave ends the call's request, releases in the background what the store may keep of the
// claim, and lets the next waiter try.
func (c *call) leave() {
	c.end(c.lock())
	c.unlock()
}

func (c *call) end(t *table) {
	c.discard(t)
	c.turn.end(c.Terms)
	if c.contender {
		c.turn.retire()
	}
	t.pump(c.turn)
}

// discard releases, in the background, what the store may keep of the claim.
func (c *call) discard(t *table) {
	if c.lease.known() {
		cleaner{c.core}.add(t, c.lease.release[0])
	}
	c.lease.move(over)
}

// rename gives the lease a new claim, because the store has reported the loss of the old
// one. The old claim is released all the same: an Acquire that was in flight may have been
// granted since.
func (c *call) rename(t *table) {
	l := c.lease
	delete(l.turn.early, l.claim().ID)
	cleaner{c.core}.add(t, l.release[0])
	l.claim().ID = t.newID()
	l.move(fresh)
	l.unheard, l.release[0].Late = 0, false
}
