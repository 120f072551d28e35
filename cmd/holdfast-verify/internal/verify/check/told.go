package check

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// late is how long a goroutine may take to be scheduled, besides the time in which its
// process has not run. docs/cli.md states the limit too.
const late = int64(500 * time.Millisecond)

// Losses checks the second half of [Told]: the context of a lost lock has ended before the
// next grant, as far as its process has run. With slots, the next grant is the first grant
// for which the slots still in use leave no room.
func (r *Run) Losses() (all []Violation) {
	for key, holds := range r.granted() {
		var live []*Hold // holders that use their locks
		for _, next := range holds {
			live = slices.DeleteFunc(live, func(h *Hold) bool { return h.told() <= next.Got })
			if lost, v := r.unaware(next, live); lost != nil {
				v.Key = key
				all = append(all, v)
				live = slices.DeleteFunc(live, func(h *Hold) bool { return slices.Contains(lost, h) }) // reported once
			}
			if next.told() != Never { // else the history ends first
				live = append(live, next)
			}
		}
	}
	return all
}

// told returns when a holder stops using a lock. A process that is being killed is not
// notified.
func (h *Hold) told() int64 { return min(h.Lost, h.Unlocked, h.Dying) }

// unaware returns the holders that used their locks for too long after a conflicting lock
// was granted; nil if no locks conflicted. A holder that stopped in time counts only if the
// lock was seen held after the grant. Without such proof, the lock may have been lost
// before.
func (r *Run) unaware(next *Hold, live []*Hold) (lost []*Hold, v Violation) {
	if !next.exceeds(live) {
		return nil, v
	}
	least, first := int64(Never), next.Until
	var names []string
	counted := slices.DeleteFunc(slices.Clone(live), func(h *Hold) bool {
		by := h.told() - next.Got - r.stalled(h.Who, Span{next.Got, h.told()})
		if by > late {
			lost, names, least = append(lost, h), append(names, h.String()), min(least, by)
		}
		return by <= late && h.Held <= next.Got
	})
	if !next.exceeds(counted) {
		return nil, v
	}
	for _, h := range counted {
		first = min(first, h.Until)
	}
	who := strings.Join(names, " and ")
	if len(names) > 1 {
		who = "one of " + who
	}
	return lost, Violation{Check: Told, At: next.Got, Reach: reach(first), Text: fmt.Sprintf(
		"%s was not told of its loss until %v after %s had got the key", who, time.Duration(least).Round(time.Millisecond), next)}
}

// exceeds reports whether a lock exceeds the limit together with the locks in others.
func (h *Hold) exceeds(others []*Hold) bool {
	sum := h.Weight
	for _, other := range others {
		sum += other.Weight
	}
	return sum > h.Limit
}

// stalled returns how much of a span a process has not run.
func (r *Run) stalled(who Who, within Span) (sum int64) {
	life := r.life(who)
	if life == nil {
		return 0
	}
	for _, s := range life.Stalls {
		if s.Overlaps(within) {
			sum += min(s.To, within.To) - max(s.From, within.From)
		}
	}
	return sum
}
