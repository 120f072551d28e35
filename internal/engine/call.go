package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A call is one call of Lock or Upgrade.
type call struct {
	attempt
	waiter *waiter // while the call stands in the queue of its turn
}

func (c *call) run() (*Hold, error) {
	if c.Limited || c.Hooks.timed() {
		c.began = c.now()
	}
	if c.Contexts {
		c.Bounds.ctx = c.ctx
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

// retry makes single tries, with random sleeps between two of them, until a try succeeds or the
// wait is over. Like a contender, retry tolerates a failing store for a while.
func (c *call) retry() (*Hold, error) {
	for {
		h, err := c.once()
		now := c.now()
		switch {
		case err == nil:
			return h, nil
		case c.refusal != nil && silence.Ended(c.ctx) != nil:
			return nil, c.endOfWait(silence.Ended(c.ctx))
		case errors.Is(err, caller.ErrHeld):
			c.answered, c.answeredAt, c.failure = true, now, nil
		case c.failure == nil, c.hopeless(now, err): // not of the store, or for too long
			return nil, err
		}
		pause := c.Least + rand.N(c.Most-c.Least+1)
		if c.Limited {
			pause = min(pause, c.began+c.Wait-now)
		}
		switch cut := c.sleep(c.ctx, pause); {
		case errors.Is(cut, ErrClosed):
			return nil, cut
		case cut != nil, c.Limited && c.now() >= c.began+c.Wait:
			return nil, c.endOfWait(cut)
		}
	}
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
		case c.contends, c.upgrades() && !c.instant():
			h, err = (&contender{attempt: &c.attempt}).run()
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
func (c *call) enter() (*Hold, error) {
	t := c.lock()
	defer c.unlock()
	if c.upgrades() {
		return nil, c.enterUpgrade(t)
	}
	for {
		if c.closed.Load() {
			return nil, ErrClosed
		}
		c.turn = t.turn(c.Key)
		l := c.turn.parked()
		if l == nil {
			break
		}
		if h := (parking{c.core, l}).take(t, &c.Request); h != nil {
			return h, nil
		}
		if !c.instant() {
			break
		}
		if cut := c.awaitLocked(l.released); cut != nil {
			return nil, c.explain(cut, new(Refusal), nil)
		}
	}
	switch c.turn.enter(c.Terms, c.instant()) {
	case refuse:
		c.refusal = c.refusalLocked(c.turn)
		return nil, c.Words.Held(c.refusal)
	case contend:
		c.contends = true
		c.request(t, true)
	case beside:
		c.lease = t.lease(c.turn, c.Terms, c.Owner)
	case stand:
		c.queueUp(t)
	}
	c.busy.Add(1)
	return nil, nil
}

// awaitLocked waits, without the mutex, until a claim that was parked is released: the claim
// must not stand in the way of its own process. It returns why the wait was cut short.
func (c *call) awaitLocked(released <-chan struct{}) error {
	c.unlock()
	defer c.lock()
	select {
	case <-released:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-c.closing:
		return ErrClosed
	}
}

// queueUp puts the call at the end of the queue. The first waiter may be the next contender.
func (c *call) queueUp(t *table) {
	c.waiter = c.newWaiter(&c.Request)
	c.turn.queue.push(c.waiter)
	t.callNext(c.turn)
}

// stand waits in the queue. stand returns a hold that was handed over, an error, or neither
// when the call has become the contender.
func (c *call) stand() (*Hold, error) {
	w := c.waiter
	if err := c.await(w); err != nil {
		return nil, err
	}
	called := *w
	*w = waiter{ready: w.ready} // The pool keeps no hold from being collected.
	c.waiters.Put(w)
	c.waiter = nil
	switch h := called.hold; {
	case called.closed:
		return nil, ErrClosed
	case h != nil && h.Err() == nil:
		return h, nil
	case h != nil: // the hold has ended since
		c.reportLocked(h)
		_ = h.Unlock()
		c.reportWanted()
		return nil, c.rejoin()
	}
	c.contends, c.answeredAt, c.lease = true, c.now(), called.claim
	t := c.lock()
	defer c.unlock()
	if c.lease == nil {
		c.request(t, false)
	} else {
		_ = c.replaceLost(t)
	}
	c.lease.span = c.span()
	return nil, nil
}

// rejoin puts the call into the queue, at the end, after the call has left its turn. Once the
// engine is closed, nobody would call the waiter.
func (c *call) rejoin() error {
	t := c.lock()
	defer c.unlock()
	if c.closed.Load() {
		return ErrClosed
	}
	c.turn = t.turn(c.Key)
	c.queueUp(t)
	return nil
}

// await returns nil when the waiter has been called, and otherwise why the waiter has
// left the queue.
func (c *call) await(w *waiter) error {
	var limit <-chan time.Time
	if c.Limited {
		timer := c.clock.NewTimer(c.began + c.Wait - c.now())
		defer timer.Stop()
		limit = timer.C
	}
	for {
		select {
		case called := <-w.ready:
			if called {
				return nil
			}
			c.reportStuck()
		case <-c.ctx.Done():
			return c.leaveQueue(w, c.ctx.Err())
		case <-limit:
			return c.leaveQueue(w, nil)
		}
	}
}

// leaveQueue takes a waiter whose wait is over out of the queue, and returns the error of the
// wait: nil if the waiter has been called just now.
func (c *call) leaveQueue(w *waiter, cause error) error {
	t := c.lock()
	defer c.unlock()
	if w.called {
		for !<-w.ready { // a report
		}
		return nil
	}
	held, failure := c.refusalLocked(c.turn), cmp.Or(c.turn.failure, c.failure)
	if failure != nil && len(c.turn.leases) == 0 && !c.turn.refused() {
		held = nil // unknown
	}
	c.turn.queue.remove(w)
	t.recycle(c.turn)
	return c.explain(cause, held, failure)
}

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
		err = c.lookAhead()
		c.leave()
		return cmp.Or(err, c.Words.Held(c.refusal))
	}
	c.leave()
	return c.rejoin()
}

func (c *call) reportWanted() {
	if c.Hooks.Wanted != nil {
		c.Hooks.Wanted(c.event())
	}
}

// reportLocked reports that the caller has a hold.
func (c *call) reportLocked(h *Hold) {
	if c.Hooks.Locked != nil {
		e := h.event(h.since)
		e.Waited = h.since - c.began
		c.Hooks.Locked(e)
	}
}

// reportStuck reports that the call waits for a hold of this engine that has lasted for long: the
// call may be nested in the work that it waits for.
func (c *call) reportStuck() {
	if c.Hooks.Stuck == nil {
		return
	}
	c.lock()
	held := c.refusalLocked(c.turn)
	c.unlock()
	c.Hooks.Stuck(c.event(), *held)
}
