package holdfast

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// contend asks the store until the store grants.
func (a *attempt) contend() (*Lock, error) {
	g, sent, err := a.acquire(true)
	if err == nil && g.OK {
		if lock, err := a.take(g, sent); lock != nil || err != nil {
			return lock, err
		}
	}
	c := &contest{attempt: *a} // a copy, so that a call without a wait needs no memory
	defer c.close()
	return c.run(g, sent, err)
}

// run subscribes to the store's wake-ups after the first refusal and sleeps between two
// looks. Subscribe, then look, then wait: the second look finds a release between the
// refusal and the subscription.
func (c *contest) run(g driver.Grant, sent time.Duration, err error) (*Lock, error) {
	for {
		again := false
		switch {
		case err == nil && g.OK:
			c.stale++
			again = c.stale < maxLate
		case err == nil:
			c.refuse(g, sent)
			again = c.subscribe()
		}
		if !again {
			if lock, err := c.rest(g, err); lock != nil || err != nil {
				return lock, err
			}
		}
		if err := c.ended(); err != nil {
			return nil, err
		}
		g, sent, err = c.acquire(true)
		if err == nil && g.OK {
			if lock, err := c.take(g, sent); lock != nil || err != nil {
				return lock, err
			}
		}
	}
}

// ended looks whether the store has reported the loss of the queued claim. The store may
// refuse the id of a lost claim even once the key is free, so the caller asks on with a new
// id. If an operator broke the claim, ended returns an error and the call ends.
func (c *contest) ended() error {
	c.lk.mu.Lock()
	why, gone := c.turn.strays[c.lease.claim().ID]
	if gone {
		c.lease.rename()
	}
	c.lk.mu.Unlock()
	if !gone || !errors.Is(why, driver.ErrBroken) {
		return nil
	}
	c.leave()
	return lossOf(why)
}

// A contest is the state of one contender between its looks.
type contest struct {
	attempt
	wake    chan driver.Grant
	stop    func()        // ends the watch
	watched string        // the id of the watched claim
	poll    time.Duration // next sleep without a wake-up
	trouble time.Duration // next sleep after an error
	answer  bool          // the store has answered
	asked   time.Duration // the Pause of the last refusal
	floor   uint64        // a pushed grant must have a token above floor
	stale   int           // grants in a row that came too late
}

const (
	firstPoll    = 5 * time.Millisecond
	firstTrouble = 20 * time.Millisecond
	lastTrouble  = 250 * time.Millisecond
)

func (c *contest) close() {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
}

// refuse records a refusal, for the call and for other calls of the process.
func (c *contest) refuse(g driver.Grant, sent time.Duration) {
	if g.Pause < c.asked {
		c.poll /= 4 // The claim has moved up in the queue, so the next pause is half as long.
	}
	c.answered, c.answer, c.floor, c.asked = sent, true, g.Floor, g.Pause
	c.trouble, c.stale = 0, 0
	c.refusal = heldError(g)
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	if c.turn.shuts(c.terms) && c.refusal.Err == nil {
		c.refusal = c.lk.heldHere(c.turn)
	}
	c.turn.waiting, c.turn.refusal, c.turn.failure = true, c.refusal, nil
	c.lease.claim().Span = c.span()
}

// subscribe reports whether a watch has just begun, so that another look is due. If the
// store cannot push, or will not now, the contender polls.
func (c *contest) subscribe() bool {
	id := c.lease.claim().ID
	if c.lk.watcher == nil || c.stop != nil && c.watched == id {
		return false
	}
	c.close()
	wake := make(chan driver.Grant, 1)
	// Watch has the limit of a call: an unanswered Watch would otherwise keep the caller
	// from asking for the whole wait, and so from its place in the queue.
	call := new(bounded.Context).Start(c.ctx, time.Now().Add(c.limit(c.lk.now())))
	defer call.End()
	stop, err := c.lk.watcher.Watch(call, *c.lease.claim(), func(g driver.Grant) { push(wake, g) })
	if err != nil {
		c.lk.deafened(call, c.key, err)
		return false
	}
	c.lk.deaf.Store(false)
	c.stop, c.wake, c.watched = stop, wake, id
	return true
}

// deafened logs that a watch failed: as a warning the first time since a watch succeeded,
// unless the call was cut short, by its limit or by the caller; otherwise as debug.
func (lk *Locker) deafened(call context.Context, key string, err error) {
	level := slog.LevelDebug
	if silence.Ended(call) == nil && !lk.deaf.Swap(true) {
		level = slog.LevelWarn
	}
	lk.log(level, "cannot be woken by the store, asks it again and again instead", "key", key, "error", err)
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

// rest sleeps until another look may succeed. It returns a lock if the store pushed the
// grant, an error if the wait is over, and neither if the contender must look again.
func (c *contest) rest(g driver.Grant, failed error) (*Lock, error) {
	now := c.lk.now()
	if failed != nil {
		c.lk.mu.Lock()
		c.turn.failure = c.failure
		c.lk.mu.Unlock()
	}
	pause := c.pause(g, failed)
	if c.limited {
		pause = min(pause, c.began+c.wait-now)
	}
	switch {
	case silence.Ended(c.ctx) != nil:
		return nil, c.giveUp(c.cancelled())
	case c.limited && pause <= 0:
		return nil, c.giveUp(c.timedOut())
	case failed != nil && c.hopeless(now, failed):
		return nil, c.giveUp(failed)
	}
	timer := c.lk.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case g := <-c.wake:
		if g.OK {
			return c.pushed(g)
		}
	case <-timer.C:
	case <-c.ctx.Done():
		return nil, c.giveUp(c.cancelled())
	case <-c.lk.closing:
		return nil, c.giveUp(ErrClosed)
	}
	return nil, nil
}

// timedOut is the error when Wait is over.
func (c *contest) timedOut() error {
	switch {
	case c.refusal != nil:
		return silence.Cut(c.refusal, c.failure)
	case c.failure != nil:
		return c.failure
	}
	return &HeldError{}
}

// cancelled is the error when the caller's context has ended.
func (c *contest) cancelled() error {
	cause := silence.Ended(c.ctx)
	if c.refusal == nil {
		return silence.Cut(cause, c.failure)
	}
	return cutShort(cause, c.refusal, c.failure)
}

// pause is how long to sleep if nothing happens. The upper bound of a second is the
// heartbeat that keeps the claim's place in the store's queue, and the price of a lost
// wake-up.
func (c *contest) pause(g driver.Grant, failed error) time.Duration {
	if failed != nil {
		c.trouble = min(max(2*c.trouble, firstTrouble), lastTrouble)
		return jitter(c.trouble)
	}
	pause := jitter(min(c.ttl/3, time.Second))
	if c.stop == nil {
		c.poll = min(max(2*c.poll, firstPoll, g.Pause), c.lk.opts.Poll)
		pause = min(pause, spread(c.poll))
	}
	if g.Retry > 0 {
		pause = min(pause, g.Retry+time.Millisecond)
	}
	return pause
}

// longestSilence is how long a store that has never answered may fail. It is longer than
// it takes to open a connection, or to fail over from a dead server.
const longestSilence = 3 * time.Second

// hopeless reports whether the store has failed for too long, or for good.
func (c *contest) hopeless(now time.Duration, failed error) bool {
	patience := min(c.ttl, longestSilence)
	if c.answer {
		patience = c.ttl
	}
	return errors.Is(failed, driver.ErrInvalid) || now-c.answered > patience
}

// pushed makes a lock of a pushed grant. The TTL counts from the last answered Acquire;
// the renewer confirms the grant if the lock is held for a while.
//
// pushed returns neither lock nor error, and the next look decides, if too little of the
// TTL is left, if the grant is for another claim, or if the message is so late that the
// grant had expired by the last refusal.
func (c *contest) pushed(g driver.Grant) (*Lock, error) {
	if g.Fence <= c.floor || c.watched != c.lease.claim().ID {
		return nil, nil
	}
	c.lease.unconfirmed = true
	lock, err := c.take(g, c.answered)
	if lock == nil {
		c.lease.unconfirmed = false
	}
	return lock, err
}

// giveUp ends the wait. The next waiter with the same terms inherits the claim, and with
// the claim the place in the store's queue; otherwise the claim is released.
//
// A claim that the store has not answered yet is inherited, too: if the store is slow and
// waits are short, releasing the claim of every ended wait would make the store slower
// still. But a claim is not inherited after a long silence of the store: it may have been
// granted, and nobody here knows.
func (c *contest) giveUp(err error) error {
	c.close() // before another call watches for the same claim
	lk, t := c.lk, c.turn
	lk.mu.Lock()
	w := t.line.first
	if w == nil || w.terms != c.terms || lk.closed || c.lease.silent(lk.now()) {
		lk.mu.Unlock()
		c.leave()
		c.discard()
		return err
	}
	defer lk.mu.Unlock()
	t.line.remove(w)
	w.call(nil, c.lease)
	return err
}
