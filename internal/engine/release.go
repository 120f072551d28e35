package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// releaseTries is how often Unlock tries before the cleaner takes over.
const releaseTries = 3

// Err returns nil while the key is held, and then why it is not. Err reads the clock.
func (h *Hold) Err() error {
	h.check()
	return h.Ended()
}

// check ends the hold as lost if its time is over.
func (h *Hold) check() {
	if h.reader != nil {
		h.reader.check()
	}
	now := h.core.now()
	left, _ := h.lease.remaining(now)
	if h.end.Load() != nil || left > 0 && now < h.ends() { // without the mutex: fixed or atomic
		return
	}
	h.core.lock()
	why := h.overLocked(now)
	h.core.unlock()
	if why != nil {
		h.lose(why)
	}
}

// Enter enters the hold again: it ends with one more Unlock. Enter reports false if the hold
// has ended.
func (h *Hold) Enter() bool {
	h.check()
	h.core.lock()
	defer h.core.unlock()
	if h.end.Load() != nil {
		return false
	}
	h.entries++
	return true
}

// Unlock ends the hold: the claim goes to the first waiter of this process, or back to the
// store. If the hold was lost, Unlock returns the loss. Each Hold has one Unlock, and one
// more for each Enter.
func (h *Hold) Unlock() error {
	if h.reader != nil {
		h.reader.check()
	}
	c := h.core
	now := time.Now()
	t := c.lock()
	h.entries--
	if h.entries > 0 {
		c.unlock()
		return nil
	}
	if c.closed.Load() { // Close unlocks it, unless it was lost
		c.unlock()
		return cmp.Or(h.Err(), ErrClosed)
	}
	c.busy.Add(1)
	defer c.busy.Done()
	at := c.clock.At(now)
	if h.end.Load() == released { // an upgrade, by the Unlock of its reader
		c.unlock()
		return ErrReleased
	}
	if why := h.overLocked(at); why != nil || h.end.Load() != nil {
		c.unlock()
		return h.unlockLost(why)
	}
	contexts := h.closeLocked(released)
	if contexts.last != nil { // end them before anyone else gets the key
		c.unlock()
		contexts.end()
		c.lock()
	}
	var e Event
	if c.Hooks.Unlocked != nil { // before the lease has a new holder
		e = h.event(c.now())
	}
	handed := h.handOver(t, at)
	if !handed {
		t.agenda.remove(h.lease)
		e.Parked = h.park(t, at)
	}
	c.unlock()
	err := h.downgrade()
	if !handed && !e.Parked {
		err = cmp.Or(h.release(now), err)
	}
	e.Err = err
	emit(c.Hooks.Unlocked, e)
	return err
}

// downgrade ends the upgrade of a reader that has ended.
func (h *Hold) downgrade() error {
	u := h.upgrade.Load()
	if u == nil || u.end.Load() != nil {
		return nil
	}
	h.core.lock()
	u.entries = 1
	h.core.unlock()
	if err := u.Unlock(); err != ErrReleased {
		return err
	}
	return nil
}

// unlockLost is Unlock of a lost hold, perhaps lost just now.
func (h *Hold) unlockLost(why *Loss) error {
	if why != nil {
		h.lose(why)
	}
	// The holder has stopped, so the store need not wait for the TTL.
	t := h.core.lock()
	if u := h.upgrade.Load(); u != nil && u.end.Load() != released {
		cleaner{h.core}.add(t, u.lease.release[0])
	}
	cleaner{h.core}.add(t, h.lease.release[0])
	h.core.unlock()
	return h.Ended()
}

// handOver hands the claim of an ended hold to the first waiter, if no request to the store
// is needed.
func (h *Hold) handOver(t *table, now time.Duration) bool {
	l := h.lease
	if h.core.closed.Load() || h.minHold > 0 {
		return false
	}
	w := l.turn.nextHolder(l, now)
	if w == nil {
		return false
	}
	w.call(h.core.inherit(t, l, w.Bounds, now), nil)
	return true
}

// park keeps the claim of an ended hold for the next call, if that is likely to come soon.
func (h *Hold) park(t *table, now time.Duration) bool {
	l := h.lease
	if h.core.closed.Load() || h.minHold > 0 || l.turn.queue.first != nil || !l.parkable(now) {
		return false
	}
	l.use(nil)
	l.parkedAt = max(now, 1)
	if !l.parkRuns {
		l.parkRuns = true
		h.core.busy.Go(parking{h.core, l}.run)
	}
	return true
}

// release ends the claim at the store and lets the first waiter contend.
func (h *Hold) release(now time.Time) error {
	h.awaitRound()
	err := h.endAtStore(now)
	t := h.core.lock()
	if l := h.lease; l.wanted > 0 {
		t.remember(l.claim().Key, l.contention(h.core.now()))
	}
	t.drop(h.lease)
	h.core.unlock()
	return err
}

// awaitRound waits for a renewal of the lease that is in flight, so that it cannot reach
// the store after the release. If the store hangs, awaitRound waits only for as long as a
// call may take: a late renewal does no harm, because a renewal revives nothing.
func (h *Hold) awaitRound() {
	l := h.lease
	h.core.lock()
	r := l.round
	if r != nil && !r.started {
		l.round, r = nil, nil
	}
	h.core.unlock()
	if r == nil {
		return
	}
	timer := h.core.clock.NewTimer(callLimit(l.claim().TTL))
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
	}
}

// endAtStore ends the claim: with a release, or, if the key must stay locked for
// longer, with a last renewal. An error means that the outcome is unknown; the cleaner
// then goes on. The error is a loss if the claim was gone.
func (h *Hold) endAtStore(now time.Time) error {
	c, l := h.core, h.lease
	last, leave := h.lastRenewal(now)
	var err error
	for try, began := 1, now; ; try, began = try+1, time.Now() {
		if leave {
			err = endClaim(c, l, began, c.Store.Renew, []driver.Renewal{last})
		} else {
			err = endClaim(c, l, began, c.Store.Release, l.release[:])
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, driver.ErrLost) {
			if try > 1 && !leave {
				return nil // an earlier try, whose answer was lost, has released it
			}
			return c.Words.Lost(lossOf(err))
		}
		if try == releaseTries || c.sleep(context.Background(), jitter(firstRetry<<try)) != nil {
			break
		}
	}
	if !leave {
		cleaner{c}.add(c.lock(), driver.Release{Claim: *l.claim(), Late: true})
		c.unlock()
	}
	return silence.Of(err, time.Since(now))
}

// lastRenewal returns the last renewal of a key that must stay locked for longer; false if the
// claim is to be released.
func (h *Hold) lastRenewal(now time.Time) (driver.Renewal, bool) {
	rest := h.minHold - (h.core.clock.At(now) - h.since)
	if h.minHold == 0 || rest <= 0 {
		return driver.Renewal{}, false
	}
	last := driver.Renewal{Claim: *h.lease.claim(), Leave: true}
	last.TTL = rest
	return last, true
}

// finish ends the hold, once, and reports true for the call that ended the hold.
func (h *Hold) finish(e *ending) bool {
	t := h.core.lock()
	first := h.end.Load() == nil
	var contexts bonds
	if first {
		contexts = h.closeLocked(e)
		t.agenda.remove(h.lease)
	}
	h.core.unlock()
	contexts.end()
	return first
}

// lose ends a lost hold. lose notifies the holder first; then different calls of this process may
// request the key. lose sends nothing to the store. The store counts down the same lease: the
// time until the lease ends is left to the holder to stop.
func (h *Hold) lose(why *Loss) {
	c := h.core
	err := c.Words.Lost(why)
	if !h.finish(&ending{err}) {
		return
	}
	if u := h.upgrade.Load(); u != nil {
		u.lose(why)
	}
	c.lock().drop(h.lease)
	c.unlock()
	if c.Hooks.Lost != nil {
		e := h.event(c.now())
		e.Err = err
		c.Hooks.Lost(e, *why)
	}
}

// loseDropped reports, once, that the holder of a lease is gone without an Unlock. The holder's
// work may go on, so the key stays locked until the TTL ends.
func loseDropped(c *core, l *lease) {
	first := c.lock().drop(l)
	c.unlock()
	if first && c.Hooks.Lost != nil {
		why := &Loss{Reason: Dropped}
		e := eventOf(l, c.now(), l.arrived)
		e.Err = c.Words.Lost(why)
		c.Hooks.Lost(e, *why)
	}
}
