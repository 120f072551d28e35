package errand

import (
	"container/list"
	"context"
	"sync"
)

// maxLanes is how many errands are under way at most. A sent request keeps a connection
// even if nobody waits for the answer, and most pools are opened without a limit.
const maxLanes = 100

// Lanes are the places for errands: one fewer than there are connections, a number that may
// change at any time. A lane is taken before a connection, not after, so an errand with a
// connection needs nothing else. Lanes are granted in FIFO order, except for clean-up.
type lanes struct {
	mu    sync.Mutex
	taken int
	line  list.List // of channels; each channel is closed when its waiter has a lane
}

// Lane waits for a lane until ctx ends. Lane is for clean-up: work that is no errand, but
// must not take the connection that errands leave free. Clean-up removes the remains of
// errands, which may block the waiters, so clean-up goes before all waiters. The holder of
// a lane must not wait for a second lane.
func (r *Runner) Lane(ctx context.Context) (leave func(), err error) {
	return r.lane(ctx, r.lanes.line.PushFront)
}

// lane waits for a lane; enter puts the waiter into the queue.
func (r *Runner) lane(ctx context.Context, enter func(any) *list.Element) (leave func(), err error) {
	l := &r.lanes
	turn := make(chan struct{})
	l.mu.Lock()
	place := enter(turn)
	r.admit()
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
		r.admit()
	default:
		l.line.Remove(place)
	}
	return nil, ctx.Err()
}

func (r *Runner) leave() {
	r.lanes.mu.Lock()
	defer r.lanes.mu.Unlock()
	r.lanes.taken--
	r.admit()
}

// admit admits the first waiters while there is room. Call admit with lanes.mu held.
func (r *Runner) admit() {
	l := &r.lanes
	for most := r.most(); l.line.Len() > 0 && l.taken < most; l.taken++ {
		close(l.line.Remove(l.line.Front()).(chan struct{}))
	}
}

// most is how many lanes there are now. A single connection is shared by all requests.
func (r *Runner) most() int {
	if r.Conns == nil {
		return maxLanes
	}
	if conns := r.Conns(); conns > 0 {
		return min(max(conns-1, 1), maxLanes)
	}
	return maxLanes
}
