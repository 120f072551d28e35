package detached

import (
	"container/list"
	"context"
	"sync"
)

// maxSlots is how many detached calls are under way at most. A sent request keeps a connection
// even if nobody waits for the answer, and most pools are opened without a limit.
const maxSlots = 100

// slots are a semaphore for detached calls, with one slot fewer than there are connections, a
// number that may change at any time. A call takes its slot before its connection, so a call
// with a connection needs nothing else. Slots are granted in FIFO order, except for clean-up.
type slots struct {
	mu    sync.Mutex
	taken int
	queue list.List // of channels; each channel is closed when its waiter has a slot
}

// Slot waits for a slot until ctx ends. Slot is for clean-up: a call that is not detached, but
// must not take the connection that detached calls leave free. Clean-up removes the remains
// of detached calls, which may block the waiters, so clean-up goes before all waiters. The
// holder of a slot must not wait for a second slot.
func (r *Runner) Slot(ctx context.Context) (leave func(), err error) {
	return r.slot(ctx, r.slots.queue.PushFront)
}

// Turn waits for a slot like [Runner.Slot], but behind all waiters. Turn is for calls that can
// wait, and for those of [Run].
func (r *Runner) Turn(ctx context.Context) (leave func(), err error) {
	return r.slot(ctx, r.slots.queue.PushBack)
}

// slot waits for a slot; enter puts the waiter into the queue.
func (r *Runner) slot(ctx context.Context, enter func(any) *list.Element) (leave func(), err error) {
	l := &r.slots
	turn := make(chan struct{})
	l.mu.Lock()
	place := enter(turn)
	r.admitLocked()
	l.mu.Unlock()
	select {
	case <-turn:
		return r.leave, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-turn: // at the same time
		l.taken--
		r.admitLocked()
	default:
		l.queue.Remove(place)
	}
	return nil, ctx.Err()
}

func (r *Runner) leave() {
	r.slots.mu.Lock()
	defer r.slots.mu.Unlock()
	r.slots.taken--
	r.admitLocked()
}

// admitLocked admits the first waiters while there is room.
func (r *Runner) admitLocked() {
	l := &r.slots
	for most := r.Slots(); l.queue.Len() > 0 && l.taken < most; l.taken++ {
		close(l.queue.Remove(l.queue.Front()).(chan struct{}))
	}
}

// Slots is how many slots there are now. A single connection is shared by all requests.
func (r *Runner) Slots() int {
	if r.Conns == nil {
		return maxSlots
	}
	if conns := r.Conns(); conns > 0 {
		return min(max(conns-1, 1), maxSlots)
	}
	return maxSlots
}
