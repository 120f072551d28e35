package check

import (
	"fmt"
	"time"
)

// late is how long a goroutine may take to be scheduled, besides the time in
// which its process has not run at all. docs/cli.md has it too.
const late = int64(500 * time.Millisecond)

// Losses checks the other half of [Told]: the context of a lost lock has ended
// before the next grant, as far as its process has run.
func (r *Run) Losses() (all []Violation) {
	for key, holds := range r.granted() {
		for i, h := range holds {
			told := min(h.Lost, h.Unlocked, h.Dying) // what is being killed is told nothing
			if told == Never {
				continue // the history ends before it does
			}
			for _, next := range holds[i+1:] {
				if next.Got >= told {
					break
				}
				if h.Weight+next.Weight <= next.Limit {
					continue
				}
				if by := told - next.Got - r.stalled(h.Who, Span{next.Got, told}); by > late {
					all = append(all, Violation{Check: Told, Key: key, At: next.Got, Reach: reach(min(h.Until, next.Until)), Text: fmt.Sprintf(
						"%s was not told of its loss until %v after %s had got the key", h, time.Duration(by).Round(time.Millisecond), next)})
				}
				break
			}
		}
	}
	return all
}

// stalled is how much of a span a process has not run.
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
