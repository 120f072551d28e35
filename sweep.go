package holdfast

import (
	"container/heap"
	"log/slog"
	"slices"
	"time"
)

// A sweep is the work that one look has found.
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

// maxNap bounds the sleep between two looks while locks are held. Timers do not count the
// time for which the machine is suspended. So after a suspend, Done may be late by maxNap.
const maxNap = time.Second

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
		r.armed = min(r.leases[0].next, now+maxNap)
		s.wait = max(r.armed-now, 0)
	}
	return s
}

// renewableSoon reports whether a renewal due within a tenth of the TTL may join the
// renewals due now.
func (l *lease) renewableSoon(now time.Duration) bool {
	return l.next == l.due && l.ttl > 0 && l.open <= now
}

// visit does the due work of a lease and reports whether the lease goes on.
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
	l.suspect(now)
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

// enlist puts a lease into a round of leases whose TTL allows the store the same time, so
// that short leases do not cut short the call for long ones.
func (s *sweep) enlist(l *lease) {
	limit := callLimit(l.claim().TTL)
	i := slices.IndexFunc(s.rounds, func(r *round) bool { return r.limit == limit && len(r.leases) < maxBatch })
	if i < 0 {
		i = len(s.rounds)
		s.rounds = append(s.rounds, &round{lk: s.lk, limit: limit, done: make(chan struct{})})
		s.lk.busy.Add(1)
	}
	l.round = s.rounds[i]
	l.round.leases = append(l.round.leases, l)
}

// act does, without the mutex, the work that the sweep has found.
func (s *sweep) act() {
	for _, l := range s.lost {
		l.lock.lose(l.why)
	}
	for _, l := range s.dropped {
		l.dropped()
	}
	for _, e := range s.atRisk {
		emit(s.lk.opts.Trace.AtRisk, e)
		s.lk.log(slog.LevelWarn, "lock is at risk: not renewed for half of its TTL", "key", e.Key, "fence", e.Fence, "error", e.Err)
	}
	for _, r := range s.rounds {
		go r.run()
	}
}
