package errand

import (
	"container/list"
	"context"
	"sync"
)

// maxLanes is how many errands are under way at most. What they have sent keeps a
// connection though nobody waits for it, and most pools are opened without a limit.
const maxLanes = 100

// Lanes are what errands run in: one fewer than there are connections, which may be
// others at any time. They are taken before connections, not after, so that whoever has
// one needs nothing else. First come, first served, but for those who clean up.
type lanes struct {
	mu    sync.Mutex
	taken int
	line  list.List // of channels, each closed when whoever waits has a lane
}

// Lane waits for a lane until ctx ends. It is for what is no errand, but should not have
// the connection either that errands leave free: what takes out of the way what errands
// have left there. So it comes before those who wait, which may be kept by just that.
// Whoever has a lane must not wait for another.
func (r *Runner) Lane(ctx context.Context) (leave func(), err error) {
	return r.lane(ctx, r.lanes.line.PushFront)
}

// lane waits for a lane in the place in line that enter takes.
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

// admit lets in the first in line while there is room. Call it with lanes.mu held.
func (r *Runner) admit() {
	l := &r.lanes
	for most := r.most(); l.line.Len() > 0 && l.taken < most; l.taken++ {
		close(l.line.Remove(l.line.Front()).(chan struct{}))
	}
}

// most is how many lanes there are now. If there is one connection, it is for all.
func (r *Runner) most() int {
	if r.Conns == nil {
		return maxLanes
	}
	if conns := r.Conns(); conns > 0 {
		return min(max(conns-1, 1), maxLanes)
	}
	return maxLanes
}
