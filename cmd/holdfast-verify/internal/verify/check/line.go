package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/driver"
)

// mostTurns is how often a process may acquire a key ahead of a waiter that has waited
// since before the first turn. One turn may come from an earlier place in the queue. On a
// busy machine a waiter may also lose a place, and queue again.
const mostTurns = 5

// Order checks [Lively] of a store with a queue: in calm times, no waiter for an exclusive
// lock is passed over. Within a process, Holdfast queues the goroutines itself, so Order
// looks at the first goroutine there.
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
				continue // a lock on many keys does not queue for every key at once
			}
			for _, calm := range q.calm(h) {
				if by, n := turns.most(calm); n > mostTurns {
					all = append(all, Violation{Check: Lively, Key: key, At: calm.From, Text: fmt.Sprintf(
						"%s waited, and worker %d.%d acquired the key %d times in a row meanwhile",
						h.Who, by.Worker, by.Life, n)})
					break
				}
			}
		}
	}
	return all
}

// turns are the times at which processes acquired a key, in order. A holder may hand over
// the key within the process for a moment, and the hand-overs count as a single turn.
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

// most returns the process with the most turns in a span, and the number of turns.
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

// calm returns the times in which the waiter is the first of its process to wait, and
// nothing has kept the waiter from its place.
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

// longStall is how long a stall must last for a process to lose its places.
const longStall = 200 * time.Millisecond
