package engine

import (
	"sync/atomic"
	"time"
)

// A Hold is what a caller has from the grant until Unlock or a loss.
type Hold struct {
	Handle any // what Config.Handle has made around the hold

	core  *core
	lease *lease

	fence   uint64
	since   time.Duration
	until   time.Duration // end of MaxHold; 0: none
	minHold time.Duration

	pace  time.Duration // Term.Progress
	stall atomic.Int64  // when the hold is lost without a report of progress; 0: never

	end atomic.Pointer[ending] // nil while the key is held

	reader  *Hold                // of an upgrade: the hold with which the upgrade ends
	upgrade atomic.Pointer[Hold] // of a reader: the last upgrade; nil without one

	// Guarded by the mutex.
	entries int32
	done    chan struct{}
	bonds   bonds
}

// An ending is the reason why a key is no longer held.
type ending struct{ err error }

var released = &ending{ErrReleased}

// newHold makes a hold that uses the lease from now on.
func newHold(c *core, l *lease, term Term, now time.Duration) *Hold {
	h := c.Handle()
	h.core, h.lease, h.fence, h.since, h.minHold, h.entries = c, l, l.fence, now, term.MinHold, 1
	if term.MaxHold > 0 {
		h.until = now + term.MaxHold
	}
	if h.pace = term.Progress; h.pace > 0 {
		h.stall.Store(int64(now + h.pace))
	}
	l.ctx = term.ctx
	l.use(h)
	return h
}

// Key returns the key as stored.
func (h *Hold) Key() string { return h.lease.claim().Key }

// ID returns the id of the claim.
func (h *Hold) ID() string { return h.lease.claim().ID }

// Weight returns the weight of the claim, with the weight of the reader below an upgrade.
func (h *Hold) Weight() int64 {
	weight := h.lease.claim().Weight
	if h.reader != nil {
		weight += h.reader.Weight()
	}
	return weight
}

// Shared reports whether the claim is a reader.
func (h *Hold) Shared() bool { return h.lease.claim().Shared() }

// Token returns the fencing token, also after the end. A reader has the token of its last
// upgrade: a resource that has seen that token rejects smaller ones.
func (h *Hold) Token() uint64 {
	if u := h.upgrade.Load(); u != nil {
		return u.fence
	}
	return h.fence
}

// Since returns when the hold began, by the clock of the engine.
func (h *Hold) Since() time.Duration { return h.since }

// Remaining returns the time until the hold is lost if no renewal succeeds from now on; false
// if the hold has no end of its own.
func (h *Hold) Remaining() (time.Duration, bool) {
	left, ok := h.lease.remaining(h.core.now())
	if h.reader == nil {
		return left, ok
	}
	below, limited := h.reader.Remaining()
	if limited && (!ok || below < left) {
		return below, true
	}
	return left, ok
}

// Err returns nil while the key is held, and then why it is not. Err reads the clock.
func (h *Hold) Err() error {
	h.check()
	return h.Ended()
}

// Ended is Err without a look at the clock.
func (h *Hold) Ended() error {
	if e := h.end.Load(); e != nil {
		return e.err
	}
	if h.reader != nil {
		return h.reader.Ended()
	}
	return nil
}

// check ends the hold as lost if its time is over.
func (h *Hold) check() {
	if h.reader != nil {
		h.reader.check()
	}
	now := h.core.now()
	if h.end.Load() != nil || !h.overdue(now) {
		return
	}
	h.core.lock()
	why := h.overLocked(now)
	h.core.unlock()
	if why != nil {
		h.lose(why)
	}
}

// overdue needs no table: the end of MaxHold is fixed, the deadlines are atomic.
func (h *Hold) overdue(now time.Duration) bool {
	left, ok := h.lease.remaining(now)
	return ok && left <= 0 || now >= h.ends()
}

// stalled reports whether the work has reported no progress for too long.
func (h *Hold) stalled(now time.Duration) bool {
	return h.pace > 0 && int64(now) >= h.stall.Load()
}

// ends returns when the hold ends even if its lease goes on.
func (h *Hold) ends() time.Duration {
	limit := never
	if h.until > 0 {
		limit = h.until
	}
	if h.pace > 0 {
		limit = min(limit, time.Duration(h.stall.Load()))
	}
	return limit
}

// overLocked says why the time of the hold is over; nil if it is not over.
func (h *Hold) overLocked(now time.Duration) *Loss {
	left, ok := h.lease.remaining(now)
	switch {
	case h.until > 0 && now >= h.until:
		return &Loss{Reason: TooLong}
	case h.stalled(now):
		return &Loss{Reason: Stalled}
	case !ok || left > 0:
		return nil
	case h.lease.failure != nil:
		return &Loss{Reason: Unreachable, Err: h.lease.failure}
	}
	return &Loss{Reason: Expired}
}

// Progress reports that the work under the hold goes on. A report after the stall is too
// late. A slow goroutine does not move the stall back. The renewer finds the new stall at its
// next look.
func (h *Hold) Progress() {
	if h.reader != nil {
		h.reader.Progress()
	}
	if h.pace == 0 {
		return
	}
	now := int64(h.core.now())
	next := now + int64(h.pace)
	for last := h.stall.Load(); now < last && last < next; last = h.stall.Load() {
		if h.stall.CompareAndSwap(last, next) {
			return
		}
	}
}

// Done returns a channel that is closed when the hold ends.
func (h *Hold) Done() <-chan struct{} {
	h.core.lock()
	defer h.core.unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.end.Load() != nil {
			close(h.done)
		} else {
			h.lease.tighten(h)
		}
	}
	return h.done
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

// Contexts counts the contexts that end with the hold.
func (h *Hold) Contexts() int {
	h.core.lock()
	defer h.core.unlock()
	return int(h.bonds.count)
}

// Attach ends a context with the hold.
func (h *Hold) Attach(b *Bond) {
	h.core.lock()
	live := h.end.Load() == nil
	if live {
		h.bonds.add(b)
		h.lease.tighten(h)
	}
	h.core.unlock()
	if !live {
		b.end()
	}
}

// finish ends the hold, once. It reports true for the call that ended the hold.
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

// closeLocked ends a hold that has not ended. End the contexts that it returns without the
// mutex.
func (h *Hold) closeLocked(e *ending) bonds {
	h.end.Store(e)
	if h.done != nil {
		close(h.done)
	}
	contexts := h.bonds
	h.bonds = bonds{}
	return contexts
}

// lose ends a lost hold. It notifies the holder first; then other calls of this process may
// request the key. It sends nothing to the store, which counts down the same lease: the
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

// forsake reports, once, that the holder of a lease is gone without an Unlock. The holder's
// work may go on, so the key stays locked until the TTL ends.
func forsake(c *core, l *lease) {
	first := c.lock().drop(l)
	c.unlock()
	if first && c.Hooks.Lost != nil {
		why := &Loss{Reason: Dropped}
		e := eventOf(l, c.now(), l.taken)
		e.Err = c.Words.Lost(why)
		c.Hooks.Lost(e, *why)
	}
}

func (h *Hold) event(now time.Duration) Event {
	e := eventOf(h.lease, now, h.since)
	e.Fence = h.fence
	return e
}

// eventOf is an event of a hold that has lasted since the given time.
func eventOf(l *lease, now, since time.Duration) Event {
	return Event{Context: l.ctx, Key: l.claim().Key, Fence: l.fence, Held: now - since}
}
