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
	until   time.Duration // end of MaxHold; without MaxHold, the constant never
	minHold time.Duration

	progress time.Duration // Bounds.Progress; 0: no limit
	stall    atomic.Int64  // when the hold is lost without a report of progress, if there is a limit

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
func newHold(c *core, l *lease, bounds Bounds, now time.Duration) *Hold {
	h := c.Handle()
	h.core, h.lease, h.fence, h.since, h.minHold, h.entries = c, l, l.fence, now, bounds.MinHold, 1
	h.until = never
	if bounds.MaxHold > 0 {
		h.until = now + bounds.MaxHold
	}
	if h.progress = bounds.Progress; h.progress > 0 {
		h.stall.Store(int64(now + h.progress))
	}
	l.ctx = bounds.ctx
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
	if h.reader != nil {
		below, limited := h.reader.Remaining()
		left, ok = min(left, below), ok || limited
	}
	return left, ok
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

// ends returns when the hold ends even if its lease goes on.
func (h *Hold) ends() time.Duration {
	if h.progress == 0 {
		return h.until
	}
	return min(h.until, time.Duration(h.stall.Load()))
}

// overLocked says why the time of the hold is over; nil if it is not over.
func (h *Hold) overLocked(now time.Duration) *Loss {
	left, _ := h.lease.remaining(now)
	switch {
	case now >= h.until:
		return &Loss{Reason: TooLong}
	case now >= h.ends():
		return &Loss{Reason: Stalled}
	case left > 0:
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
	if h.progress == 0 {
		return
	}
	now := int64(h.core.now())
	next := now + int64(h.progress)
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
			h.lease.strengthen(h)
		}
	}
	return h.done
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
		h.lease.strengthen(h)
	}
	h.core.unlock()
	if !live {
		b.end()
	}
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

func (h *Hold) event(now time.Duration) Event {
	e := eventOf(h.lease, now, h.since)
	e.Fence = h.fence
	return e
}

// eventOf is an event of a hold that has lasted since the given time.
func eventOf(l *lease, now, since time.Duration) Event {
	return Event{Context: l.ctx, Key: l.claim().Key, Fence: l.fence, Held: now - since}
}
