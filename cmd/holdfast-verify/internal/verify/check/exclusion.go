package check

import (
	"fmt"
	"slices"
)

// Exclusion checks [Exclusive]: the store never has two conflicting holders. A lock counts
// from its grant until its release, its reported loss, or its last known deadline. Until
// then the lock stands in the store, even without a process. If the store notices the end
// of processes, the end of the process ends the lock as well.
func (r *Run) Exclusion(freesOnDeath bool) []Violation {
	return r.exclusion(Exclusive, "the store has granted both at once", func(h *Hold) Span {
		end := min(h.Unlocked, h.Lost, h.Until)
		if h.Until == Never {
			end = min(h.Unlocked, h.Lost, max(h.Got, h.Held))
		}
		if freesOnDeath {
			end = min(end, h.Dying)
		}
		return Span{h.Got, end}
	})
}

// Belief checks [Told] from the holder's side: while a lock reports itself as held, the key
// has no second holder. The check covers stopped processes as well.
func (r *Run) Belief() []Violation {
	return r.exclusion(Told, "both locks said that they were held", func(h *Hold) Span {
		return Span{h.Got, max(h.Got, h.Held)}
	})
}

// exclusion finds a moment at which the locks on a key exceed a limit.
func (r *Run) exclusion(check Promise, text string, span func(*Hold) Span) (all []Violation) {
	for key, holds := range r.granted() {
		var live []*Hold
		for _, h := range holds {
			now := span(h).From
			live = slices.DeleteFunc(live, func(other *Hold) bool { return span(other).To <= now })
			sum, first := h.Weight, h.Until
			for _, other := range live {
				sum += other.Weight
				first = min(first, other.Until)
			}
			if span(h).To > now && sum > h.Limit {
				all = append(all, Violation{Check: check, Key: key, At: now, Reach: reach(first), Text: fmt.Sprintf("%s: %s and %s", text, live[0], h)})
			}
			live = append(live, h)
		}
	}
	return all
}

// reach converts a deadline for a [Violation]: 0 without a deadline.
func reach(deadline int64) int64 {
	if deadline == Never {
		return 0
	}
	return deadline
}

func (h *Hold) String() string {
	return fmt.Sprintf("%s, %s with token %d", h.Who, h.Mode, h.Token)
}
