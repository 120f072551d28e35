package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/pace"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A contender asks the store until the store grants, on behalf of the queue of a turn. An upgrade
// contends for itself.
type contender struct {
	*attempt
	over <-chan struct{} // of an upgrade: closed when the reader ends

	wake    chan driver.Grant
	stop    func()        // ends the store's wake-ups
	watched string        // the id of the watched claim
	pace    pace.Pace     // of the sleeps without a wake-up
	backoff time.Duration // last sleep after an error
	floor   uint64        // a pushed grant must have a token above floor
	stale   int           // grants in a row that came too late
}

// run subscribes to the store's wake-ups after the first refusal and sleeps between two looks.
// Subscribe, then look, then wait: the second look finds a release between the refusal and the
// subscription. If a refusal is likely, the subscription comes first, and saves that look.
func (c *contender) run() (*Hold, error) {
	defer c.unwatch()
	if c.upgrades() {
		ended, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		c.reader.Attach(&Bond{Context: ended, Cancel: cancel})
		c.over = ended.Done()
	}
	if c.likely && !c.unwatched.Load() {
		c.subscribe(c.askLimit(c.now()) / 2) // leaves time to ask
	}
	for {
		g, sent, err := c.acquire(true)
		if err == nil && g.OK {
			if h, err := c.take(g, sent); h != nil || err != nil {
				return h, err
			}
		}
		if !c.again(g, sent, err) {
			if err == nil && !g.OK {
				if why := c.lookAhead(); why != nil {
					return nil, c.giveUp(why)
				}
			}
			if h, err := c.rest(g, err); h != nil || err != nil {
				return h, err
			}
		}
		if err := c.lostInQueue(); err != nil {
			return nil, err
		}
	}
}

// again reports whether another look is due at once.
func (c *contender) again(g driver.Grant, sent time.Duration, err error) bool {
	switch {
	case err != nil:
		return false
	case g.OK:
		c.stale++
		return c.stale < maxLate
	}
	c.noteRefusal(g, sent)
	return c.subscribe(c.askLimit(c.now()))
}

// lostInQueue looks whether the store has reported the loss of the queued claim. The store may
// refuse the id of a lost claim even once the key is free, so the call asks on with a new
// id. If an operator broke the claim, lostInQueue returns an error and the call ends.
func (c *contender) lostInQueue() error {
	t := c.lock()
	defer c.unlock()
	lost := c.replaceLost(t)
	if !errors.Is(lost, driver.ErrBroken) {
		return nil
	}
	c.end(t)
	return c.Words.Lost(lossOf(lost))
}

func (c *contender) unwatch() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// noteRefusal records a refusal, for the call and for other calls of the process.
func (c *contender) noteRefusal(g driver.Grant, sent time.Duration) {
	c.answeredAt, c.answered, c.floor = sent, true, g.Floor
	c.backoff, c.stale = 0, 0
	c.refusal = refusalOf(g)
	c.lock()
	defer c.unlock()
	if c.turn.full(c.Terms) && c.refusal.Err == nil {
		c.refusal = c.refusalLocked(c.turn)
	}
	if c.contends {
		c.turn.refuses(c.refusal)
	}
	c.lease.span = c.span()
}

// subscribe reports whether a watch has just begun, so that another look is due. If the
// store cannot push, or will not now, the contender polls.
func (c *contender) subscribe(limit time.Duration) bool {
	id := c.lease.claim().ID
	if c.watcher == nil || c.stop != nil && c.watched == id {
		return false
	}
	c.unwatch()
	wake := make(chan driver.Grant, 1)
	// Watch has the limit of a call: an unanswered Watch would otherwise keep the caller
	// from asking for the whole wait, and so from its place in the queue.
	ctx := new(bounded.Context).Start(c.ctx, time.Now().Add(limit))
	defer ctx.End()
	stop, err := c.watcher.Watch(ctx, *c.lease.claim(), func(g driver.Grant) { push(wake, g) })
	if err != nil {
		if c.Hooks.Unwatched != nil {
			e := c.event()
			e.Err, e.Again = err, silence.Ended(ctx) != nil || c.unwatched.Swap(true)
			c.Hooks.Unwatched(e)
		}
		return false
	}
	c.unwatched.Store(false)
	c.stop, c.wake, c.watched = stop, wake, id
	return true
}

// push never blocks: one wake-up stands for many, and a grant replaces a wake-up.
func push(wake chan driver.Grant, g driver.Grant) {
	for {
		select {
		case wake <- g:
			return
		default:
		}
		if !g.OK {
			return
		}
		select {
		case <-wake:
		default:
		}
	}
}

// rest sleeps until another look may succeed. It returns a hold if the store pushed the
// grant, an error if the wait is over, and neither if the contender must look again.
func (c *contender) rest(g driver.Grant, failed error) (*Hold, error) {
	now := c.now()
	if failed != nil && c.contends {
		c.lock()
		c.turn.failure = c.failure
		c.unlock()
	}
	pause := c.nap(g, failed)
	if c.Limited {
		pause = min(pause, c.began+c.Wait-now)
	}
	switch {
	case silence.Ended(c.ctx) != nil:
		return nil, c.giveUp(c.endOfWait(silence.Ended(c.ctx)))
	case c.Limited && now >= c.began+c.Wait:
		return nil, c.giveUp(c.endOfWait(nil))
	case failed != nil && c.hopeless(now, failed):
		return nil, c.giveUp(failed)
	}
	timer := c.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case g := <-c.wake:
		if g.OK {
			return c.takePushed(g)
		}
	case <-timer.C:
	case <-c.ctx.Done():
		return nil, c.giveUp(c.endOfWait(c.ctx.Err()))
	case <-c.closing:
		return nil, c.giveUp(ErrClosed)
	case <-c.over:
		return nil, c.giveUp(c.reader.Ended())
	}
	return nil, nil
}

// nap is how long to sleep if nothing happens. The heartbeat keeps the claim's place in the
// store's queue, and bounds the price of a lost wake-up: mostly to a second. Far back in a
// queue, the end of the holder's lease is not yet the turn of the claim.
func (c *contender) nap(g driver.Grant, failed error) time.Duration {
	if failed != nil {
		c.backoff = min(max(2*c.backoff, firstRetry), lastRetry)
		return jitter(c.backoff)
	}
	alive := c.lease.claim().Alive()
	nap := jitter(max(alive, g.Kept) / 3)
	if c.stop == nil {
		poll := min(g.Pause, c.Poll)
		if g.Next {
			c.pace = pace.Pace{}
		} else {
			poll = c.pace.Next(g.Pause, c.Poll)
		}
		nap = min(nap, pace.Spread(poll))
	}
	if g.Left > 0 && g.Kept <= alive {
		nap = min(nap, g.Left+time.Millisecond)
	}
	return nap
}

// takePushed makes a hold of a pushed grant. The TTL counts from the last answered Acquire,
// which may be long ago: what is left counts from now. The renewer confirms the grant if the
// hold lasts for a while.
//
// takePushed returns neither hold nor error, and the next look decides, if too little of the
// TTL is left, if the grant is for another claim, or if the message is so late that the
// grant had expired by the last refusal.
func (c *contender) takePushed(g driver.Grant) (*Hold, error) {
	if g.Fence <= c.floor || c.watched != c.lease.claim().ID {
		return nil, nil
	}
	now := c.now()
	if waited := now - c.answeredAt; g.TTL > 0 {
		g.TTL = max(g.TTL-waited-waited/100, 1) // clocks differ in rate
	}
	c.lease.move(pushed)
	return c.take(g, now)
}

// giveUp ends the wait. The claim passes to the next waiter if that has the same terms, and with
// the claim the place in the store's queue; otherwise the claim is released.
//
// A claim that the store has not answered yet passes on, too: if the store is slow and
// waits are short, releasing the claim of every ended wait would make the store slower
// still. But a claim does not pass on after a long silence of the store: it may have been
// granted, and nobody here knows.
func (c *contender) giveUp(err error) error {
	c.unwatch() // before another call watches for the same claim
	t := c.lock()
	defer c.unlock()
	if !c.closed.Load() && !c.lease.silent(c.now()) {
		if w := c.turn.replacement(c.Terms); w != nil {
			w.call(nil, c.lease)
			return err
		}
	}
	c.end(t)
	return err
}
