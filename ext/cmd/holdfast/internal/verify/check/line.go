package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// mostTurns is how often a process may get a key before another that has waited
// since before the first time. It may once, from a place that it had before; and
// on a busy machine somebody may lose a place, and stand in line anew.
const mostTurns = 5

// Order checks [Lively] of a store with a line: nobody who waits for an exclusive
// lock is passed over, in calm times. Within a process the line is its own, so
// this looks at who is the first there.
func (r *Run) Order(store Store) (all []Violation) {
	if !store.Line {
		return nil
	}
	harms := r.harms()
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		q := &queue{run: r, holds: holds, store: store, harms: harms}
		turns := q.turns()
		for _, h := range holds {
			if h.Mode != string(plan.Exclusive) && h.Mode != string(plan.Reenter) {
				continue // a lock on many keys is not in line for all of them
			}
			for _, calm := range q.calm(h) {
				if by, n := turns.most(calm); n > mostTurns {
					all = append(all, Violation{Check: Lively, Key: key, At: calm.From, Text: fmt.Sprintf(
						"%s waited, and worker %d.%d has got the key %d times meanwhile, one after the other",
						h.Who, by.Worker, by.Life, n)})
					break
				}
			}
		}
	}
	return all
}

// turns are the times at which processes have got a key, in order. Who has it may
// hand it on within the process for a moment, which counts as one.
type turns map[Who][]int64

func (q *queue) turns() turns {
	all := make(turns)
	got := slices.DeleteFunc(slices.Clone(q.holds), func(h *Hold) bool { return h.Got == Never || h.Weight < driver.MaxWeight })
	slices.SortFunc(got, func(a, b *Hold) int { return cmp.Compare(a.Got, b.Got) })
	for _, h := range got {
		who := Who{Worker: h.Who.Worker, Life: h.Who.Life}
		if last := len(all[who]) - 1; last < 0 || h.Got > all[who][last]+settling {
			all[who] = append(all[who], h.Got)
		}
	}
	return all
}

// most returns who has had most turns in a span, and how many.
func (t turns) most(within Span) (who Who, most int) {
	for one, all := range t {
		from, _ := slices.BinarySearch(all, within.From)
		to, _ := slices.BinarySearch(all, within.To)
		if to-from > most {
			who, most = one, to-from
		}
	}
	return who, most
}

// calm are the times in which somebody is the first of its process to wait, and
// nothing has kept it from its place.
func (q *queue) calm(h *Hold) (all []Span) {
	first, wait := h.Asked, h.waits()
	if wait.To-first < mostTurns*settling {
		return nil // so few turns that there is nothing to see
	}
	for _, other := range q.holds {
		if other.Who.Worker == h.Who.Worker && other.Who.Life == h.Who.Life && other.Asked < h.Asked {
			first = max(first, min(other.Freed, other.Refused))
		}
	}
	var unrest []Span
	for _, f := range q.harms {
		if f.harms(h.Who) {
			unrest = append(unrest, f.until(q.store.Place))
		}
	}
	if l := q.run.life(h.Who); l != nil {
		unrest = append(unrest, slices.DeleteFunc(slices.Clone(l.Stalls), func(s Span) bool { return s.To-s.From < int64(longStall) })...)
	}
	slices.SortFunc(unrest, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, u := range append(unrest, Span{wait.To, Never}) {
		if end := min(u.From, wait.To); first < end-settling {
			all = append(all, Span{first + settling, end})
		}
		first = max(first, u.To)
	}
	return all
}

// longStall is how long a process that does not run may lose its places.
const longStall = 200 * time.Millisecond
