package verify

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// wake is how long a server may take to see what has become of it: programs look
// at the clock now and then, and on a busy machine they wait for a processor.
const wake = 500 * time.Millisecond

// excuse returns the last of the faults that can have led to a violation, and whose
// harm the store does not promise to stand; nil if there is none, so that the
// violation is held against the store.
func (s *scene) excuse(v check.Violation, faults []check.Fault) *check.Fault {
	for i, f := range slices.Backward(faults) {
		if f.Matters() && s.target.waives(f, v) && s.reaches(f, v, 0) || s.sets(f, v, faults) {
			return &faults[i]
		}
	}
	return nil
}

// waives reports whether a violation is one that the store does not promise to be
// without in the face of such a fault.
func (t *target) waives(f check.Fault, v check.Violation) bool {
	waived := t.waived(plan.Nemesis(f.Nemesis))
	return slices.Contains(waived, v.Check) ||
		v.Check == check.Growing && v.Joined && slices.Contains(waived, readers) ||
		v.Given != "" && slices.Contains(waived, v.Given)
}

// reaches reports whether a fault can have led to a violation: it had begun by then,
// and a lock that was granted or renewed before it was over may have been there still,
// or for longer than that. A violation that is no moment may have been at any time.
func (s *scene) reaches(f check.Fault, v check.Violation, longer time.Duration) bool {
	until := v.Reach
	if until == 0 {
		until = v.At
	}
	return v.At == 0 || f.From < v.At && until-int64(s.TTL+wake+longer) <= f.To
}

// sets reports whether tokens may have gone back because a fault has set the clock by
// which a store gives them, and the store has also forgotten them, before or since: they
// do so until the right time is past all that the clock has shown.
func (s *scene) sets(clock check.Fault, v check.Violation, faults []check.Fault) bool {
	if clock.Step == 0 || v.Check != check.Growing && v.Check != check.Fenced {
		return false
	}
	forgotten := slices.ContainsFunc(faults, func(f check.Fault) bool {
		return slices.Contains(forgetting[s.target.url.Scheme], plan.Nemesis(f.Nemesis)) && (v.At == 0 || f.From < v.At)
	})
	return forgotten && s.reaches(clock, v, time.Duration(clock.Step).Abs())
}
