package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// releaseTries is how often Unlock tries before the cleaner takes over.
const releaseTries = 3

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
	if t.closed {
		c.unlock()
		return ErrClosed // Close unlocks it
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
		err = cmp.Or(h.giveBack(now), err)
	}
	e.Err = err
	emit(c.Hooks.Unlocked, e)
	return err
}

// downgrade ends the upgrade of a reader that has ended.
func (h *Hold) downgrade() error {
	u := h.upgrade.Load()
	if u == nil {
		return nil
	}
	h.core.lock()
	held := u.end.Load() == nil
	u.entries = 1
	h.core.unlock()
	if !held {
		return nil
	}
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
	if t.closed || h.minHold > 0 {
		return false
	}
	w := l.turn.successor(l, now)
	if w == nil {
		return false
	}
	w.call(h.core.inherit(t, l, w.Term, now), nil)
	return true
}

// park keeps the claim of an ended hold for the next call, if that is likely to come soon.
func (h *Hold) park(t *table, now time.Duration) bool {
	l := h.lease
	if t.closed || h.minHold > 0 || l.turn.queue.first != nil || !l.parkable(now) {
		return false
	}
	l.park(now)
	if !l.attended {
		l.attended = true
		h.core.busy.Add(1)
		go parking{h.core, l}.run()
	}
	return true
}

// giveBack settles the claim at the store and lets the first waiter contend.
func (h *Hold) giveBack(now time.Time) error {
	h.awaitRound()
	err := h.settle(now)
	t := h.core.lock()
	if l := h.lease; l.wanted {
		t.remember(l.claim().Key, h.core.now())
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

// settle ends a claim at the store: with a release, or, if the key must stay locked for
// longer, with a last renewal. An error means that the outcome is unknown; the cleaner
// then goes on. The error is a loss if the claim was gone.
func (h *Hold) settle(now time.Time) error {
	c, l := h.core, h.lease
	last, leave := h.leaving(now)
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
		if try == releaseTries || c.sleep(context.Background(), jitter(firstTrouble<<try)) != nil {
			break
		}
	}
	if !leave {
		cleaner{c}.add(c.lock(), driver.Release{Claim: *l.claim(), Late: true})
		c.unlock()
	}
	return silence.Of(err, time.Since(now))
}

// leaving returns the last renewal of a key that must stay locked for longer; false if the
// claim is to be released.
func (h *Hold) leaving(now time.Time) (driver.Renewal, bool) {
	rest := h.minHold - (h.core.clock.At(now) - h.since)
	if h.minHold == 0 || rest <= 0 {
		return driver.Renewal{}, false
	}
	last := driver.Renewal{Claim: *h.lease.claim(), Leave: true}
	last.TTL = rest
	return last, true
}

// endClaim makes one call that ends a claim, and returns the answer.
func endClaim[T any](c *core, l *lease, now time.Time, call func(context.Context, []T) []error, last []T) error {
	ctx, bound := c.context(context.Background(), l, now.Add(callLimit(l.claim().TTL)))
	defer bound.End()
	if errs := call(ctx, last); len(errs) > 0 {
		return errs[0]
	}
	return nil
}

// unlockAll ends the holds of an engine that closes.
func (c *core) unlockAll(holds []*Hold) error {
	began := time.Now()
	var leaving []driver.Renewal
	var going []driver.Release
	holds = slices.DeleteFunc(holds, func(h *Hold) bool { return !h.finish(&ending{ErrClosed}) })
	for _, h := range holds {
		h.awaitRound()
		if last, leave := h.leaving(time.Now()); leave {
			leaving = append(leaving, last)
		} else {
			going = append(going, h.lease.release[0])
		}
	}
	left, errLeft := endAll(leaving, c.Store.Renew)
	kept, err := endAll(going, c.Store.Release)
	t := c.lock()
	for _, r := range kept {
		cleaner{c}.add(t, r)
	}
	t.until = c.now() + closingGrace
	c.unlock()
	failed := make(map[string]bool, len(left)+len(kept)) // by id
	for _, r := range left {
		failed[r.ID] = true
	}
	for _, r := range kept {
		failed[r.ID] = true
	}
	err = silence.Of(cmp.Or(err, errLeft), time.Since(began))
	c.unlocked(holds, failed, err)
	if len(failed) > 0 {
		return fmt.Errorf("holdfast: close: %d of %d locks not released, they end with their TTL: %w",
			len(failed), len(holds), err)
	}
	return nil
}

// unlocked reports the holds that Close has ended; failed are the ids of those whose last
// call failed.
func (c *core) unlocked(holds []*Hold, failed map[string]bool, err error) {
	if c.Hooks.Unlocked == nil {
		return
	}
	for _, h := range holds {
		event := h.event(c.now())
		if failed[h.ID()] {
			event.Err = err
		}
		c.Hooks.Unlocked(event)
	}
}

// endAll ends claims, one call per batch, and returns those of unknown fate. It stops
// after a batch without an answer, so that a store that hangs does so only once.
func endAll[T any](all []T, call func(context.Context, []T) []error) (failed []T, last error) {
	for len(all) > 0 {
		batch := all[:min(len(all), MaxBatch)]
		all = all[len(batch):]
		unknown := 0
		for i, err := range shortly(batch, call) {
			if err != nil && !errors.Is(err, driver.ErrLost) {
				failed, last = append(failed, batch[i]), err
				unknown++
			}
		}
		if unknown == len(batch) {
			return append(failed, all...), last
		}
	}
	return failed, last
}
