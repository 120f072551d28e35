package check

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// A queue is every request for a key.
type queue struct {
	run    *Run
	holds  []*Hold
	store  Store
	harms  []Fault
	behind []int64             // a time for each fault: later requests may queue behind its remains
	unseen []Span              // for each fault: a request may be the first to see the remains
	grants map[process][]*Hold // granted requests of each process, in the order of the requests
	busy   []Span              // in which nobody can be expected to acquire the key, in order
}

// A process is a life of a worker.
type process struct{ worker, life int }

func (w Who) process() process { return process{w.Worker, w.Life} }

// queues returns the queues of every key.
func (r *Run) queues(store Store, standstill time.Duration) map[string]*queue {
	busy, harms := union(append(r.busy(), r.standstills(standstill)...)), r.harms()
	all := make(map[string]*queue)
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		q := &queue{run: r, holds: holds, store: store, harms: harms, busy: busy, grants: make(map[process][]*Hold)}
		for _, h := range holds {
			if h.Got != Never {
				q.grants[h.Who.process()] = append(q.grants[h.Who.process()], h)
			}
		}
		for _, grants := range q.grants {
			slices.SortFunc(grants, func(a, b *Hold) int { return cmp.Compare(a.Asked, b.Asked) })
		}
		for _, f := range harms {
			q.behind = append(q.behind, q.leaves(f))
			q.unseen = append(q.unseen, q.hides(f))
		}
		all[key] = q
	}
	return all
}

// stuck returns the waiter with the longest wait without an excuse in a span.
func (q *queue) stuck(span Span) (who Who, longest time.Duration) {
	for _, h := range q.holds {
		waited := Span{max(h.Asked, span.From), min(h.waits().To, span.To)}
		if waited.To-waited.From <= int64(longest) {
			continue
		}
		if rest := q.unexcused(h, waited); rest > longest {
			who, longest = h.Who, rest
		}
	}
	return who, longest
}

// unexcused returns how much of a wait has no excuse.
func (q *queue) unexcused(h *Hold, waited Span) time.Duration {
	excuses := slices.Clone(overlapping(q.busy, waited))
	if l := q.run.life(h.Who); l != nil {
		excuses = append(excuses, overlapping(l.Stalls, waited)...)
	}
	for i, f := range q.harms {
		if f.harms(h.Who) || q.behind[i] < h.Asked {
			excuses = append(excuses, f.until(q.store.Place))
		}
		if q.unseen[i].From <= h.Asked && h.Asked < q.unseen[i].To {
			seen := min(h.Asked, q.sees(h.Who.process(), f))
			excuses = append(excuses, Span{seen, seen + int64(q.store.Place)})
		}
	}
	rest, at := int64(0), waited.From
	for _, e := range union(excuses) {
		rest += max(0, min(e.From, waited.To)-at)
		at = max(at, e.To)
	}
	return time.Duration(rest + max(0, waited.To-at))
}

// settling is how long a new claim may take to join the queue, and an abandoned claim to
// leave the queue.
const settling = int64(time.Second)

// leaves returns a time for a fault: the remains of the fault may block the waiters that
// asked later. In a queue, only earlier claims block a waiter. A waiting goroutine may
// stand in the place of a goroutine that has given up. It may not stand in the place of a
// goroutine that has acquired the lock.
func (q *queue) leaves(f Fault) (after int64) {
	there, first, last := false, int64(Never), int64(0)
	for _, other := range q.holds {
		if !f.harmed(other) {
			continue
		}
		there = there || f.leaves(other)
		if other.Got < f.From && other.Weight == other.Limit {
			last = max(last, other.Got)
		}
	}
	switch {
	case !there:
		return Never
	case !q.store.Line:
		return math.MinInt64
	}
	for _, other := range q.holds {
		if f.harmed(other) && other.waits().To > last {
			first = min(first, other.Asked)
		}
	}
	return max(first, last) - settling
}

// hides returns when a request may be the first to see the remains of a fault, if the store counts
// from then. The remains have gone when a request that was made after the fault acquires the whole
// key.
func (q *queue) hides(f Fault) Span {
	if !q.store.Seen {
		return Span{Never, Never}
	}
	there, gone := false, int64(Never)
	for _, h := range q.holds {
		there = there || f.leaves(h)
		if h.Weight == h.Limit && h.Asked-settling > f.To {
			gone = min(gone, h.Got)
		}
	}
	if !there {
		return Span{Never, Never}
	}
	return Span{f.From, gone}
}

// sees returns when a process has seen the remains of a fault at the latest. The process reads the
// claims of a key when it acquires the key by a later request, or when it renews a lock that has
// passed from one of its goroutines to the next.
func (q *queue) sees(p process, f Fault) int64 {
	grants := q.grants[p]
	i := sort.Search(len(grants), func(i int) bool { return grants[i].Asked-settling > f.To })
	if i == len(grants) {
		return Never
	}
	return grants[i].Got + int64(q.store.Held)
}

// union joins spans that overlap, and puts the spans in order.
func union(all []Span) (joined []Span) {
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range all {
		if last := len(joined) - 1; last >= 0 && s.From <= joined[last].To {
			joined[last].To = max(joined[last].To, s.To)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// overlapping returns the spans that overlap within. The spans of the argument are in
// order, and do not overlap.
func overlapping(all []Span, within Span) []Span {
	from := sort.Search(len(all), func(i int) bool { return all[i].To > within.From })
	to := sort.Search(len(all), func(i int) bool { return all[i].From >= within.To })
	return all[from:max(from, to)]
}
