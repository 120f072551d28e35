package check

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// A queue is all who have asked for a key.
type queue struct {
	run    *Run
	holds  []*Hold
	store  Store
	harms  []Fault
	behind []int64 // for each of them, who has asked later may stand behind what it has left
	busy   []Span  // in which nobody can be expected to get it, in order
}

// queues returns those of all keys.
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

// stuck returns who has waited longest of a span without an excuse.
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

// unexcused is how long of a time in which somebody waits nothing keeps the key from it.
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

// settling is how long it may take until a claim is in line after it was asked for,
// and until one that was given up has gone from there.
const settling = int64(time.Second)

// leaves returns when who waits must have asked for what a fault leaves in the store to
// be in its way: after that. In a line that is only what has come before. A goroutine
// that waits may stand in the place of one that has given up, but not in that of one
// that was let in.
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

// union joins spans that overlap, and puts them in order.
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

// overlapping returns those of some spans that overlap another. They are in order, and
// do not overlap each other.
func overlapping(all []Span, within Span) []Span {
	from := sort.Search(len(all), func(i int) bool { return all[i].To > within.From })
	to := sort.Search(len(all), func(i int) bool { return all[i].From >= within.To })
	return all[from:max(from, to)]
}
