package holdfast

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// contend asks the store until it grants.
func (a *attempt) contend() (*Lock, error) {
	g, sent, err := a.acquire(true)
	if err == nil && g.OK {
		if lock, err := a.take(g, sent); lock != nil || err != nil {
			return lock, err
		}
	}
	c := &contest{attempt: *a} // a copy, so that a call that need not wait needs no memory
	defer c.close()
	return c.run(g, sent, err)
}

// run subscribes to the store's wake-ups after the first refusal and sleeps
// between two looks. Subscribe, then look, then wait: a release between the
// refusal and the subscription is found by the second look.
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

// ended reports whether the store has told that the claim, which stands in line,
// is gone: it keeps the id out, even once the key is free. An operator who broke
// it meant the caller; otherwise the caller asks on with a new id.
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
	watched string        // the id that it is for
	poll    time.Duration // next sleep without a wake-up
	trouble time.Duration // next sleep after an error
	answer  bool          // it has given one
	asked   time.Duration // for what pause
	floor   uint64        // a grant that is pushed must have a token above it
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

// refuse takes note of a refusal, for this call and for others of this process.
func (c *contest) refuse(g driver.Grant, sent time.Duration) {
	if g.Pause < c.asked {
		c.poll /= 4 // It has moved up in line, so that the next pause is half as long.
	}
	c.answered, c.answer, c.floor, c.asked = sent, true, g.Floor, g.Pause
	c.trouble, c.stale = 0, 0
	c.refusal = heldError(g)
	c.lk.mu.Lock()
	defer c.lk.mu.Unlock()
	c.turn.waiting, c.turn.refusal = true, c.refusal
	c.lease.claim().Span = c.span()
}

// subscribe reports whether it has just begun a watch, so that another look is
// due. Where the store cannot push, or will not now, the contender polls.
func (c *contest) subscribe() bool {
	id := c.lease.claim().ID
	if c.lk.watcher == nil || c.stop != nil && c.watched == id {
		return false
	}
	c.close()
	wake := make(chan driver.Grant, 1)
	stop, err := c.lk.watcher.Watch(c.ctx, *c.lease.claim(), func(g driver.Grant) { push(wake, g) })
	if err != nil {
		c.lk.log().Debug("cannot watch, polling instead", "key", c.key, "error", err)
		return false
	}
	c.stop, c.wake, c.watched = stop, wake, id
	return true
}

// push never blocks: one wake-up stands for many, and a grant for a wake-up.
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

// rest sleeps until it may pay to look again. It returns a lock if the store
// pushed the grant, an error if the wait is over, neither to look again.
func (c *contest) rest(g driver.Grant, failed error) (*Lock, error) {
	now := c.lk.now()
	pause := c.pause(g, failed)
	if c.limited {
		pause = min(pause, c.began+c.wait-now)
	}
	switch {
	case c.ctx.Err() != nil:
		return nil, c.giveUp(c.cancelled())
	case c.limited && pause <= 0:
		return nil, c.giveUp(c.timedOut(failed))
	case failed != nil && c.hopeless(now, failed):
		return nil, c.giveUp(failed)
	}
	timer := time.NewTimer(pause)
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
func (c *contest) timedOut(failed error) error {
	switch {
	case c.refusal != nil:
		return c.refusal
	case failed != nil:
		return failed
	}
	return &HeldError{}
}

// cancelled is the error when the caller's context has ended.
func (c *contest) cancelled() error {
	if c.refusal == nil {
		return c.ctx.Err()
	}
	return cutShort(c.ctx.Err(), c.refusal)
}

// pause is how long to sleep if nothing happens. The upper bound of a second is
// the heartbeat that keeps the claim's place in the store's queue, and the
// price of a lost wake-up.
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

// longestSilence is how long a store may fail that has never answered: longer
// than it takes to open a connection, or to take over from a server that died.
const longestSilence = 3 * time.Second

// hopeless reports whether the store has failed for too long, or for good.
func (c *contest) hopeless(now time.Duration, failed error) bool {
	patience := min(c.ttl, longestSilence)
	if c.answer {
		patience = c.ttl
	}
	return errors.Is(failed, driver.ErrInvalid) || now-c.answered > patience
}

// pushed makes a lock of a grant that came by push. Its TTL counts from the
// last Acquire that was answered; the renewer confirms it if it is held for a
// while. If too little is left of it, the next look tells, as it does of a message
// so late that the grant had run out by the last refusal, or is another claim's.
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

// giveUp ends the wait. The next in line with the same terms inherits the claim
// and with it the place in the store's queue; otherwise the claim is released.
// That goes for a claim of which the store has said nothing yet, too: if it is slow
// and waits are short, the claims of all who give up would have to be cleaned away,
// which makes it slower. But not for long: it may be granted, and nobody here knows.
func (c *contest) giveUp(err error) error {
	c.close() // before another watches for the same claim
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
