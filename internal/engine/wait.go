package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/pace"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A watch is the state of a contender between its looks.
type watch struct {
	wake    chan driver.Grant
	stop    func()        // ends the store's wake-ups
	watched string        // the id of the watched claim
	pace    pace.Pace     // of the sleeps without a wake-up
	trouble time.Duration // next sleep after an error
	answer  bool          // the store has answered
	floor   uint64        // a pushed grant must have a token above floor
	stale   int           // grants in a row that came too late
}

// contend asks the store until the store grants. It subscribes to the store's wake-ups after
// the first refusal and sleeps between two looks. Subscribe, then look, then wait: the second
// look finds a release between the refusal and the subscription. If a refusal is likely, the
// subscription comes first, and saves that look.
func (c *call) contend() (*Hold, error) {
	defer c.unwatch()
	if c.contended && !c.deaf.Load() {
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
			if err == nil && c.upgrades() {
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

// recall looks whether other processes are likely to hold the key, and whether the process has
// come back at once.
func (c *call) recall(t *table, back bool) {
	if len(t.contended) == 0 {
		return
	}
	ago, ok := t.recall(c.Key, c.now())
	c.contended, c.lease.quick = ok, ok && back && ago <= MaxPark
	c.lease.span = c.span()
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

// again reports whether another look is due at once.
func (c *call) again(g driver.Grant, sent time.Duration, err error) bool {
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
func (c *call) lostInQueue() error {
	t := c.lock()
	defer c.unlock()
	why, gone := c.turn.early[c.lease.claim().ID]
	if gone {
		c.rename(t)
	}
	if !gone || !errors.Is(why, driver.ErrBroken) {
		return nil
	}
	c.end(t)
	return c.Words.Lost(lossOf(why))
}

// acquire sends one Acquire and records the answer.
func (c *call) acquire(wait bool) (driver.Grant, time.Duration, error) {
	now := time.Now()
	sent := c.clock.At(now)
	ctx, bound := c.context(c.ctx, c.lease, now.Add(c.askLimit(sent)))
	defer bound.End()
	if c.answeredAt == never {
		c.answeredAt = sent
	}
	g, err := c.Store.Acquire(ctx, driver.Ask{Claim: *c.lease.claim(), Wait: wait, Span: c.lease.span})
	c.lease.answered(sent, wait, g, err)
	if err != nil {
		err = c.failed(err)
	} else {
		c.failure = nil
	}
	if !g.OK && c.Hooks.Tried != nil {
		c.reportTried(g, err)
	}
	return g, sent, err
}

// askLimit is how long one call to the store may take, from now.
func (c *call) askLimit(now time.Duration) time.Duration {
	if !c.Limited || c.Wait == 0 {
		return callLimit(c.TTL)
	}
	return max(min(callLimit(c.TTL), c.began+c.Wait-now), 0)
}

// failed records the error of an Acquire, and returns the error for the caller. If the
// caller has cut the call short, by the context or by Wait, the store's previous answer
// says more about the store than this error. So failed then records this error only if it
// says more than that the call was cut short.
func (c *call) failed(err error) error {
	now, ended := c.now(), silence.Ended(c.ctx)
	known := c.failure != nil || c.refusal != nil
	short := ended != nil || known && c.Limited && now >= c.began+c.Wait
	if !short || silence.Words(err) != "" {
		c.failure = silence.Of(err, now-c.answeredAt)
	}
	if ended == nil || errors.Is(err, driver.ErrInvalid) {
		return c.failure
	}
	return silence.Cut(ended, c.failure)
}

func (c *call) unwatch() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// noteRefusal records a refusal, for the call and for other calls of the process.
func (c *call) noteRefusal(g driver.Grant, sent time.Duration) {
	c.answeredAt, c.answer, c.floor = sent, true, g.Floor
	c.trouble, c.stale = 0, 0
	c.refusal = refusalOf(g)
	c.lock()
	defer c.unlock()
	if c.turn.shuts(c.Terms) && c.refusal.Err == nil {
		c.refusal = c.refusalLocked(c.turn)
	}
	if c.contender {
		c.turn.refuses(c.refusal)
	}
	c.lease.span = c.span()
}

// subscribe reports whether a watch has just begun, so that another look is due. If the
// store cannot push, or will not now, the contender polls.
func (c *call) subscribe(limit time.Duration) bool {
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
		if c.Hooks.Deaf != nil {
			e := c.event()
			e.Err, e.Again = err, silence.Ended(ctx) != nil || c.deaf.Swap(true)
			c.Hooks.Deaf(e)
		}
		return false
	}
	c.deaf.Store(false)
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
func (c *call) rest(g driver.Grant, failed error) (*Hold, error) {
	now := c.now()
	if failed != nil && c.contender {
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
		return nil, c.giveUp(c.cancelled())
	case c.Limited && pause <= 0:
		return nil, c.giveUp(c.timedOut())
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
		return nil, c.giveUp(c.cancelled())
	case <-c.closing:
		return nil, c.giveUp(ErrClosed)
	case <-c.over:
		return nil, c.giveUp(c.reader.Ended())
	}
	return nil, nil
}

// timedOut is the error when Wait is over.
func (c *call) timedOut() error {
	switch {
	case c.refusal != nil:
		return silence.Cut(c.Words.Held(c.refusal), c.failure)
	case c.failure != nil:
		return c.failure
	}
	return c.Words.Held(new(Refusal))
}

// cancelled is the error when the caller's context has ended.
func (c *call) cancelled() error {
	cause := silence.Ended(c.ctx)
	if c.refusal == nil {
		return silence.Cut(cause, c.failure)
	}
	return cutShort(cause, c.Words.Held(c.refusal), c.failure)
}

// nap is how long to sleep if nothing happens. The heartbeat keeps the claim's place in the
// store's queue, and bounds the price of a lost wake-up: mostly to a second. Far back in a
// queue, the end of the holder's lease is not yet the turn of the claim.
func (c *call) nap(g driver.Grant, failed error) time.Duration {
	if failed != nil {
		c.trouble = min(max(2*c.trouble, firstTrouble), lastTrouble)
		return jitter(c.trouble)
	}
	alive := c.lease.claim().Alive()
	nap := jitter(max(alive, g.Kept) / 3)
	if c.stop == nil {
		poll := c.pace.Next(g.Pause, c.Poll)
		if g.Next {
			c.pace, poll = pace.Pace{}, min(g.Pause, c.Poll)
		}
		nap = min(nap, pace.Spread(poll))
	}
	if g.Left > 0 && g.Kept <= alive {
		nap = min(nap, g.Left+time.Millisecond)
	}
	return nap
}

// longestSilence is how long a store that has never answered may fail. It is longer than
// it takes to open a connection, or to fail over from a dead server.
const longestSilence = 3 * time.Second

// hopeless reports whether the store has failed for too long, or for good.
func (c *call) hopeless(now time.Duration, failed error) bool {
	patience := min(c.TTL, longestSilence)
	if c.answer {
		patience = c.TTL
	}
	return errors.Is(failed, driver.ErrInvalid) || now-c.answeredAt > patience
}

// takePushed makes a hold of a pushed grant. The TTL counts from the last answered Acquire,
// which may be long ago: what is left counts from now. The renewer confirms the grant if the
// hold lasts for a while.
//
// takePushed returns neither hold nor error, and the next look decides, if too little of the
// TTL is left, if the grant is for another claim, or if the message is so late that the
// grant had expired by the last refusal.
func (c *call) takePushed(g driver.Grant) (*Hold, error) {
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

// giveUp ends the wait. The next waiter with the same terms inherits the claim, and with
// the claim the place in the store's queue; otherwise the claim is released.
//
// A claim that the store has not answered yet is inherited, too: if the store is slow and
// waits are short, releasing the claim of every ended wait would make the store slower
// still. But a claim is not inherited after a long silence of the store: it may have been
// granted, and nobody here knows.
func (c *call) giveUp(err error) error {
	c.unwatch() // before another call watches for the same claim
	t := c.lock()
	defer c.unlock()
	if !t.closed && !c.lease.silent(c.now()) {
		if w := c.turn.heir(c.Terms); w != nil {
			w.call(nil, c.lease)
			return err
		}
	}
	c.end(t)
	return err
}

// cutShort is the error of a wait that cause ended. It matches cause, held, and failure:
// the last failure of the store, which may be nil.
func cutShort(cause, held, failure error) error {
	if failure == nil {
		return fmt.Errorf("%w while %w", cause, held)
	}
	return silence.Cut(fmt.Errorf("%w while %w", cause, held), failure)
}
