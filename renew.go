package holdfast

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// The renewer keeps the leases of a Locker alive. One goroutine sleeps until
// something is due for the first of them: a renewal, a warning, or the end. It
// never waits for the store, so that a loss is announced in time however the
// store behaves: renewals run in rounds of their own, a batch of claims each.
type renewer struct {
	lk      *Locker
	leases  leaseHeap     // guarded by Locker.mu, as are armed and running
	armed   time.Duration // when the goroutine will look next
	running bool
	kick    chan struct{} // look now
	quit    chan struct{}
	stopped chan struct{}
	rounds  chan struct{} // a place for each round that may run
}

// maxRounds bounds the calls that renew at the same time.
const maxRounds = 8

const never = time.Duration(math.MaxInt64)

func (r *renewer) init(lk *Locker) {
	r.lk = lk
	r.kick = make(chan struct{}, 1)
	r.quit = make(chan struct{})
	r.stopped = make(chan struct{})
	r.rounds = make(chan struct{}, maxRounds)
}

// renewal is what the renewer knows of a lease.
type renewal struct {
	next    time.Duration // when to look at it
	index   int           // place in the heap plus one; 0: not there
	due     time.Duration // next renewal
	open    time.Duration // from when on it may go with others that are due
	risk    time.Duration // when to warn; 0 once it has been done
	backoff time.Duration
	failure error  // of the last renewal; nil since one succeeded
	round   *round // the renewal in flight

	// Granted by push, and so for a short time only: the first renewal, which
	// is due at once, lets it stand for its TTL.
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
		l.due, l.open = 0, 0
	}
	l.schedule()
	heap.Push(&r.leases, l)
	if !r.running {
		r.running, r.armed = true, never
		go r.run()
	}
	r.hurry(l.next)
}

// hurry wakes the goroutine if it would look too late.
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

// stop ends the goroutine and waits for it. Rounds are waited for by Close.
func (r *renewer) stop() {
	close(r.quit)
	r.lk.mu.Lock()
	running := r.running
	r.running = true // none starts any more
	r.lk.mu.Unlock()
	if running {
		<-r.stopped
	}
}

func (r *renewer) run() {
	defer close(r.stopped)
	timer := time.NewTimer(0)
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

// A sweep is what one look has found to do.
type sweep struct {
	lk      *Locker
	wait    time.Duration // until the next look
	lost    []loss
	dropped []*lease
	atRisk  []Event
	rounds  []*round
}

type loss struct {
	lock *Lock
	why  *LostError
}

// sweep looks at every lease whose time has come.
func (r *renewer) sweep() *sweep {
	lk := r.lk
	lk.mu.Lock()
	defer lk.mu.Unlock()
	s := &sweep{lk: lk, wait: never}
	now := lk.now()
	for len(r.leases) > 0 {
		l := r.leases[0]
		if l.next > now && !l.renewableSoon(now) {
			break
		}
		if s.visit(l, now) {
			l.schedule()
			heap.Fix(&r.leases, 0)
		} else {
			r.remove(l)
		}
	}
	r.armed = never
	if len(r.leases) > 0 {
		r.armed = r.leases[0].next
		s.wait = max(r.armed-now, 0)
	}
	return s
}

// renewableSoon reports whether a renewal that is due within a tenth of the TTL
// may as well go with those that are due now.
func (l *lease) renewableSoon(now time.Duration) bool {
	return l.next == l.due && l.ttl > 0 && l.open <= now
}

// visit does what is due for a lease and reports whether it goes on.
func (s *sweep) visit(l *lease, now time.Duration) bool {
	lock := l.holder()
	if lock == nil {
		s.dropped = append(s.dropped, l)
		return false
	}
	if why := lock.over(now); why != nil {
		s.lost = append(s.lost, loss{lock, why})
		return false
	}
	if s.lk.closed {
		return false // Close unlocks it
	}
	if l.ttl == 0 {
		l.loosen()
		l.due = now + l.claim().TTL
		return true
	}
	if !l.renews() {
		return true
	}
	if l.risk > 0 && l.risk <= now {
		l.risk = 0
		e := lock.event()
		e.Err = l.failure
		s.atRisk = append(s.atRisk, e)
	}
	if l.round == nil && l.open <= now {
		l.loosen()
		s.enlist(l)
	}
	return true
}

func (s *sweep) enlist(l *lease) {
	n := len(s.rounds)
	if n == 0 || len(s.rounds[n-1].leases) == maxBatch {
		s.rounds = append(s.rounds, &round{lk: s.lk, done: make(chan struct{})})
		s.lk.busy.Add(1)
		n++
	}
	l.round = s.rounds[n-1]
	l.round.leases = append(l.round.leases, l)
}

// act does, without the mutex, what the sweep has found.
func (s *sweep) act() {
	for _, l := range s.lost {
		l.lock.lose(l.why)
	}
	for _, l := range s.dropped {
		s.lk.drop(l)
		key := s.lk.shown(l.claim().Key)
		s.lk.log().Error("lock was dropped without Unlock and is no longer renewed", "key", key, "fence", l.fence)
		emit(s.lk.opts.Trace.Lost, Event{Key: key, Owner: s.lk.opts.Owner, Fence: l.fence,
			Err: &LostError{Reason: LossDropped}})
	}
	for _, e := range s.atRisk {
		emit(s.lk.opts.Trace.AtRisk, e)
		s.lk.log().Warn("lock is at risk: not renewed for half of its TTL", "key", e.Key, "fence", e.Fence, "error", e.Err)
	}
	for _, r := range s.rounds {
		go r.run()
	}
}

// A round is one call that renews a batch of claims.
type round struct {
	lk      *Locker
	leases  []*lease
	started bool // guarded by Locker.mu
	done    chan struct{}
}

func (r *round) run() {
	defer r.lk.busy.Done()
	defer close(r.done)
	r.lk.renewer.rounds <- struct{}{}
	defer func() { <-r.lk.renewer.rounds }()
	claims, limit := r.start()
	if len(claims) == 0 {
		return
	}
	sent := r.lk.now()
	errs := r.lk.renew(claims, limit)
	for _, l := range r.finish(sent, errs) {
		l.lock.lose(l.why)
	}
	if hook := r.lk.opts.Trace.Renewed; hook != nil {
		for i, c := range claims {
			if errs == nil || errs[i] == nil {
				hook(Event{Key: r.lk.shown(c.Key), Owner: r.lk.opts.Owner})
			}
		}
	}
}

// start drops the leases that have ended since, and says how long the call may
// take: until the earliest deadline among them at most.
func (r *round) start() ([]driver.Claim, time.Duration) {
	r.lk.mu.Lock()
	defer r.lk.mu.Unlock()
	r.started = true
	now, limit := r.lk.now(), time.Second
	kept := r.leases[:0]
	claims := make([]driver.Claim, 0, len(r.leases))
	for _, l := range r.leases {
		if l.round != r || l.index == 0 {
			l.round = nil
			continue
		}
		kept = append(kept, l)
		claims = append(claims, *l.claim())
		left, _ := l.remaining(now)
		limit = min(limit, callLimit(l.claim().TTL), left)
	}
	r.leases = kept
	return claims, limit
}

// renew makes one call to the store.
func (lk *Locker) renew(claims []driver.Claim, limit time.Duration) []error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return answers(len(claims), lk.store.Renew(ctx, claims))
}

// finish enters the answers and returns the locks that are lost.
func (r *round) finish(sent time.Duration, errs []error) (lost []loss) {
	lk := r.lk
	lk.mu.Lock()
	defer lk.mu.Unlock()
	for i, l := range r.leases {
		l.round = nil
		var err error
		if errs != nil {
			err = errs[i]
		}
		switch {
		case err == nil:
			if l.unconfirmed {
				l.ttl, l.unconfirmed = l.claim().TTL, false
			}
			l.extend(sent)
		case errors.Is(err, driver.ErrLost):
			if lock := l.holder(); lock != nil {
				lost = append(lost, loss{lock, lossOf(err)})
			}
			continue
		default:
			l.failure = err
			l.backoff = min(max(2*l.backoff, firstTrouble), callLimit(l.ttl))
			l.due = lk.now() + jitter(l.backoff)
			l.open = l.due
		}
		if l.index > 0 {
			l.schedule()
			heap.Fix(&lk.renewer.leases, l.index-1)
			lk.renewer.hurry(l.next)
		}
	}
	return lost
}

// awaitRound waits for a renewal of the lease that is in flight, so that it
// cannot reach the store after the release. A store that hangs is not waited
// for: a renewal revives nothing.
func (l *lease) awaitRound() {
	l.lk.mu.Lock()
	r := l.round
	if r != nil && !r.started {
		l.round, r = nil, nil
	}
	l.lk.mu.Unlock()
	if r == nil {
		return
	}
	timer := time.NewTimer(callLimit(l.claim().TTL))
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
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
