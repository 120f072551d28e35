package holdfast

import (
	"container/heap"
	"math"
	"time"
)

// The renewer keeps the leases of a Locker alive. One goroutine sleeps until a lease is due
// for a renewal, a warning, or its end. The goroutine never waits for the store, so a loss
// is announced in time whatever the store does: renewals run in rounds of their own, a
// batch of claims per round.
type renewer struct {
	lk      *Locker
	leases  leaseHeap     // guarded by Locker.mu, as are armed and running
	armed   time.Duration // when the goroutine will look next
	running bool
	kick    chan struct{} // look now
	quit    chan struct{}
	stopped chan struct{}
	rounds  chan struct{} // a place for every round that may run
}

// maxRounds bounds the calls that renew at the same time.
const maxRounds = 8

// confirmAfter is when the first renewal of a pushed grant is due. Such a grant stands for
// three seconds, or for the TTL if that is shorter. A lock that is released before
// confirmAfter needs no renewal, and its Unlock finds none in flight. confirmAfter is longer
// than maxTurn, for locks that one claim serves in turn.
const confirmAfter = 50 * time.Millisecond

const never = time.Duration(math.MaxInt64)

func (r *renewer) init(lk *Locker) {
	r.lk = lk
	r.kick = make(chan struct{}, 1)
	r.quit = make(chan struct{})
	r.stopped = make(chan struct{})
	r.rounds = make(chan struct{}, maxRounds)
}

// renewal is the renewer's state of a lease.
type renewal struct {
	next    time.Duration // when to look at the lease
	index   int           // place in the heap plus one; 0: not there
	due     time.Duration // next renewal
	open    time.Duration // from when on the lease may join other due renewals
	risk    time.Duration // when to warn; 0 after the warning
	backoff time.Duration
	failure error  // of the last renewal; nil since one succeeded
	round   *round // the renewal in flight

	// The claim was granted by push, and so for a short time only: the first renewal, which
	// is due soon, lets the claim stand for its TTL.
	unconfirmed bool
}

// renews reports whether the lease is to be renewed.
func (l *lease) renews() bool { return !l.noRenew || l.unconfirmed }

// schedule sets when to look at the lease next.
func (l *lease) schedule() {
	l.next = never
	if lock := l.holder(); lock != nil && lock.until > 0 {
		l.next = lock.until
	}
	switch {
	case l.ttl == 0:
		l.next = min(l.next, l.due)
		return
	case l.renews() && l.round == nil:
		l.next = min(l.next, l.due)
	}
	if l.renews() && l.risk > 0 {
		l.next = min(l.next, l.risk)
	}
	l.next = min(l.next, time.Duration(l.deadline.Load()))
}

// add begins to look after a lease. Call it with Locker.mu held.
func (r *renewer) add(l *lease) {
	if l.unconfirmed {
		l.due = min(l.due, r.lk.now()+confirmAfter)
		l.open = l.due - confirmAfter/2
	}
	l.schedule()
	heap.Push(&r.leases, l)
	if !r.running {
		r.running, r.armed = true, never
		go r.run()
	}
	r.hurry(l.next)
}

// see looks at a lease again after a new lock has begun to use it.
func (r *renewer) see(l *lease) {
	if l.index == 0 {
		r.add(l)
		return
	}
	next := l.next
	if l.schedule(); l.next != next {
		heap.Fix(&r.leases, l.index-1)
		r.hurry(l.next)
	}
}

// hurry wakes the goroutine if the next look would be too late.
func (r *renewer) hurry(next time.Duration) {
	if next >= r.armed {
		return
	}
	r.armed = next
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// remove stops looking after a lease. Call it with Locker.mu held.
func (r *renewer) remove(l *lease) {
	if l.index > 0 {
		heap.Remove(&r.leases, l.index-1)
	}
}

// stop ends the goroutine and waits until it has ended. Close waits for the rounds.
func (r *renewer) stop() {
	close(r.quit)
	r.lk.mu.Lock()
	running := r.running
	r.running = true // so that no goroutine starts any more
	r.lk.mu.Unlock()
	if running {
		<-r.stopped
	}
}

func (r *renewer) run() {
	defer close(r.stopped)
	timer := r.lk.clock.NewTimer(0)
	defer timer.Stop()
	for {
		s := r.sweep()
		s.act()
		timer.Reset(s.wait)
		select {
		case <-timer.C:
		case <-r.kick:
		case <-r.quit:
			return
		}
	}
}

// leaseHeap orders leases by when to look at them.
type leaseHeap []*lease

func (h leaseHeap) Len() int           { return len(h) }
func (h leaseHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h leaseHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i+1, j+1
}

func (h *leaseHeap) Push(x any) {
	l := x.(*lease)
	*h = append(*h, l)
	l.index = len(*h)
}

func (h *leaseHeap) Pop() any {
	old := *h
	last := len(old) - 1
	l := old[last]
	old[last] = nil
	*h = old[:last]
	l.index = 0
	return l
}
