package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// wake is how long a server may take to notice an event: programs read the clock now and
// then, and wait for a processor on a busy machine.
const wake = 500 * time.Millisecond

// excuse returns the last fault that can have led to a violation, and whose harm the store
// does not promise to stand. Without such a fault, excuse returns nil, and the violation
// counts against the store.
func (s *scene) excuse(v check.Violation, faults []check.Fault) *check.Fault {
	for i, f := range slices.Backward(faults) {
		if f.Matters() && s.target.waives(f, v) && s.reaches(f, v, 0) || s.sets(f, v, faults) {
			return &faults[i]
		}
	}
	return nil
}

// waives reports whether the store does not promise to prevent the violation in the face of
// such a fault.
func (t *target) waives(f check.Fault, v check.Violation) bool {
	waived := t.waived(plan.Nemesis(f.Nemesis))
	return slices.Contains(waived, v.Check) ||
		v.Check == check.Growing && v.Joined && slices.Contains(waived, readers) ||
		v.Given != "" && slices.Contains(waived, v.Given)
}

// reaches reports whether a fault can have led to a violation. The fault must have begun
// before the violation. A lock granted or renewed before the end of the fault may still
// have stood then; longer is the time for which such a lock may stand beyond its TTL. A
// violation without a moment may have happened at any time.
func (s *scene) reaches(f check.Fault, v check.Violation, longer time.Duration) bool {
	return v.At == 0 || f.From < v.At && cmp.Or(v.Reach, v.At)-int64(s.TTL+wake+longer) <= f.To
}

// sets reports whether tokens may have gone back because a fault has set the clock of the
// store's tokens. The store must also have forgotten its tokens, before or since. Tokens go
// back until the right time is past every time that the clock has shown.
func (s *scene) sets(clock check.Fault, v check.Violation, faults []check.Fault) bool {
	if clock.Step == 0 || v.Check != check.Growing && v.Check != check.Fenced {
		return false
	}
	forgotten := slices.ContainsFunc(faults, func(f check.Fault) bool {
		return slices.Contains(forgetting[s.target.url.Scheme], plan.Nemesis(f.Nemesis)) && (v.At == 0 || f.From < v.At)
	})
	return forgotten && s.reaches(clock, v, time.Duration(clock.Step).Abs())
}
