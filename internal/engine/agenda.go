package engine

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// MaxBatch is how many claims one call to the store carries.
const MaxBatch = 500

// maxNap bounds the sleep between two looks while keys are held. Timers do not count the
// time for which the machine is suspended. So after a suspend, Done may be late by maxNap.
const maxNap = time.Second

// ConfirmAfter is when the first renewal of a pushed grant is due. Such a grant stands for
// three seconds, or for a shorter TTL. A hold that is released before
// ConfirmAfter needs no renewal, and the Unlock finds no renewal in flight. ConfirmAfter is longer
// than MaxTurn, for holds that one claim serves in turn.
const ConfirmAfter = 50 * time.Millisecond

// An agenda is the leases of a core in the order of their next looks.
type agenda struct {
	leases leaseHeap
	armed  time.Duration // when the renewer will look next
}

// An entry is the place of a lease in the agenda, and the reasons for it.
type entry struct {
	next    time.Duration // when to look at the lease
	index   int           // place in the agenda plus one; 0: not there
	due     time.Duration // next renewal
	open    time.Duration // from when on the lease may join other due renewals
	risk    time.Duration // when to warn; after the warning, the constant never
	backoff time.Duration
	round   *round // the renewal in flight
}

// A round is one call that renews a batch of claims.
type round struct {
	leases  []*lease
	limit   time.Duration // for the call
	started bool
	done    chan struct{}
}

// Work is what a look at the agenda has found.
type work struct {
	wait    time.Duration // until the next look
	lost    []lost
	dropped []*lease
	atRisk  []Event
	rounds  []*round
}

type lost struct {
	hold *Hold
	why  *Loss
}

// add puts a lease into the agenda, and reports whether the renewer has to look sooner.
func (a *agenda) add(l *lease, now time.Duration) (sooner bool) {
	if l.life == brief {
		l.due = min(l.due, now+ConfirmAfter)
		l.open = l.due - ConfirmAfter/2
	}
	l.schedule()
	a.leases = append(a.leases, look{})
	a.leases.settle(len(a.leases)-1, look{l.next, l})
	return a.arm(l.next)
}

// move puts a lease to the place of its next look, after a change. It reports whether the
// renewer has to look sooner.
func (a *agenda) move(l *lease, now time.Duration) (sooner bool) {
	if l.index == 0 {
		return a.add(l, now)
	}
	next := l.next
	if l.schedule(); l.next == next {
		return false
	}
	a.fix(l)
	return a.arm(l.next)
}

// fix puts a lease to its place after l.next has changed.
func (a *agenda) fix(l *lease) { a.leases.settle(l.index-1, look{l.next, l}) }

// arm notes that the renewer has to look at that time.
func (a *agenda) arm(next time.Duration) (sooner bool) {
	if next >= a.armed {
		return false
	}
	a.armed = next
	return true
}

// remove takes a lease out of the agenda.
func (a *agenda) remove(l *lease) {
	if l.index == 0 {
		return
	}
	i, last := l.index-1, len(a.leases)-1
	moved := a.leases[last]
	a.leases[last] = look{}
	a.leases = a.leases[:last]
	l.index = 0
	if i < last {
		a.leases.settle(i, moved)
	}
}

// due looks at every lease whose time has come. Once the engine is closed, nothing is
// renewed.
func (a *agenda) due(now time.Duration, closed bool) *work {
	w := &work{wait: never}
	for len(a.leases) > 0 {
		l := a.leases[0].lease
		if l.next > now && !l.renewableSoon(now) {
			break
		}
		if w.visit(l, now, closed) {
			l.schedule()
			a.fix(l)
		} else {
			a.remove(l)
		}
	}
	a.armed = never
	if len(a.leases) > 0 {
		a.armed = min(a.leases[0].next, now+maxNap)
		w.wait = max(a.armed-now, 0)
	}
	return w
}

// visit does the due work of a lease and reports whether the lease stays in the agenda.
func (w *work) visit(l *lease, now time.Duration, closed bool) bool {
	h := l.holder()
	if h == nil {
		w.dropped = append(w.dropped, l)
		return false
	}
	if why := h.overLocked(now); why != nil {
		w.lost = append(w.lost, lost{h, why})
		return false
	}
	if closed {
		return false // Close unlocks it
	}
	l.warnWaiter(now)
	if l.ttl == 0 {
		l.weaken()
		l.due = now + l.claim().TTL
		return true
	}
	if !l.renews() {
		return true
	}
	if l.risk <= now {
		l.risk = never
		e := h.event(now)
		e.Err = l.failure
		w.atRisk = append(w.atRisk, e)
	}
	if l.round == nil && l.open <= now {
		l.weaken()
		w.enlist(l)
	}
	return true
}

// enlist puts a lease into a round. The leases of a round allow the store the same time: a short
// lease must not cut short the call for a long lease.
func (w *work) enlist(l *lease) {
	limit := callLimit(l.claim().TTL)
	i := slices.IndexFunc(w.rounds, func(r *round) bool { return r.limit == limit && len(r.leases) < MaxBatch })
	if i < 0 {
		i = len(w.rounds)
		w.rounds = append(w.rounds, &round{limit: limit, done: make(chan struct{})})
	}
	l.round = w.rounds[i]
	l.round.leases = append(l.round.leases, l)
}

// start drops the leases that have ended since the look, and returns the renewals and the
// limit of the call: at most the time until the earliest deadline of the batch.
func (r *round) start(now time.Duration) ([]driver.Renewal, time.Duration) {
	r.started = true
	limit := r.limit
	kept := r.leases[:0]
	renewals := make([]driver.Renewal, 0, len(r.leases))
	for _, l := range r.leases {
		if l.round != r || l.index == 0 {
			l.round = nil
			continue
		}
		kept = append(kept, l)
		renewals = append(renewals, driver.Renewal{Claim: *l.claim()})
		left, _ := l.remaining(now)
		limit = min(limit, left)
	}
	r.leases = kept
	return renewals, limit
}

// warnWaiter makes the first waiter report, once per hold, that this engine has held the key
// for long. A timer would slow hand-overs down.
func (l *lease) warnWaiter(now time.Duration) {
	w := l.turn.queue.first
	if w == nil || l.warned || now-l.began() < max(l.claim().TTL, longWait) {
		return
	}
	l.warned = true
	w.warn()
}

// longWait is how long a key must be held at least before the engine reports that a call of
// its own waits for the key.
const longWait = 10 * time.Second

// callLimit is how long a store may take to answer.
func callLimit(ttl time.Duration) time.Duration { return min(ttl/6, time.Second) }

// renewableSoon reports whether a renewal due within a tenth of the TTL may join the
// renewals due now.
func (l *lease) renewableSoon(now time.Duration) bool {
	return l.next == l.due && l.ttl > 0 && l.open <= now
}

// schedule sets when to look at the lease next.
func (l *lease) schedule() {
	l.next = time.Duration(l.deadline.Load())
	if h := l.holder(); h != nil {
		l.next = min(l.next, h.ends())
	}
	if l.ttl == 0 || l.renews() && l.round == nil {
		l.next = min(l.next, l.due)
	}
	if l.renews() {
		l.next = min(l.next, l.risk)
	}
}

// A leaseHeap is a binary heap of leases by when to look at them. With container/heap each new
// lease would cost an allocation.
type leaseHeap []look

// A look is a lease and when to look at it. It repeats entry.next: to compare two leases would cost two
// cache misses, if there are many.
type look struct {
	next  time.Duration
	lease *lease
}

// settle puts a look to its place, given that the rest is a heap and i is free.
func (h leaseHeap) settle(i int, l look) {
	for i > 0 && l.next < h[(i-1)/2].next {
		h.set(i, h[(i-1)/2])
		i = (i - 1) / 2
	}
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].next < h[child].next {
			child++
		}
		if child >= len(h) || l.next <= h[child].next {
			break
		}
		h.set(i, h[child])
		i = child
	}
	h.set(i, l)
}

func (h leaseHeap) set(i int, l look) {
	h[i] = l
	l.lease.index = i + 1
}
