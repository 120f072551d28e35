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
	behind []int64 // a time for each fault: later requests may queue behind its remains
	busy   []Span  // in which nobody can be expected to acquire the key, in order
}

// queues returns the queues of every key.
func (r *Run) queues(store Store, standstill time.Duration) map[string]*queue {
	busy, harms := union(append(r.busy(), r.standstills(standstill)...)), r.harms()
	all := make(map[string]*queue)
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		q := &queue{run: r, holds: holds, store: store, harms: harms, busy: busy}
		for _, f := range harms {
			q.behind = append(q.behind, q.leaves(f))
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
	harmed := func(other *Hold) bool {
		return other.Who.Worker == f.Worker && other.Asked < f.To && other.Died >= f.From
	}
	for _, other := range q.holds {
		if !harmed(other) {
			continue
		}
		there = there || other.present().Overlaps(f.Span)
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
		if harmed(other) && other.waits().To > last {
			first = min(first, other.Asked)
		}
	}
	return max(first, last) - settling
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
