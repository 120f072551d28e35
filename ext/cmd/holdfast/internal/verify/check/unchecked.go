package check

import (
	"fmt"
	"slices"
	"time"
)

// Unchecked says which promises the history has not put to the proof, and why: a check
// that has nothing to look at finds nothing.
func (r *Run) Unchecked(ttl, slack time.Duration) map[Promise]string {
	all := make(map[Promise]string)
	granted := func(of func(*Hold) bool) bool {
		return slices.ContainsFunc(r.Holds, func(h *Hold) bool { return h.Got != Never && of(h) })
	}
	if !slices.ContainsFunc(r.Accesses, func(a *Access) bool { return a.Write }) {
		all[Fenced] = "no lock has guarded a register"
	}
	if !granted(func(h *Hold) bool { return h.Token != 0 }) {
		all[Growing] = "no lock had a token"
	}
	renewed := granted(func(h *Hold) bool { return min(h.Lost, max(h.Got, h.Held))-h.Got > int64(ttl)/2 })
	switch {
	case ttl < 2*slack:
		all[Kept] = fmt.Sprintf("with a TTL of less than %v nobody can tell a lock that was not renewed from a slow machine", 2*slack)
	case !renewed:
		all[Kept] = "no lock was held for long enough to be renewed"
	}
	if !slices.ContainsFunc(r.Holds, func(h *Hold) bool { return h.Mode != "try" }) {
		all[Lively] = "nobody has waited for a lock"
	}
	if len(r.Results) == 0 {
		all[Single] = "no effect had a result"
	}
	return all
}

// Gaps returns all the times in which somebody waited for a key that nobody had.
// A lock of whose holder nothing is heard stands for lapse.
func (r *Run) Gaps(lapse time.Duration) (all []Gap) {
	for key, holds := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		for _, span := range idle(holds, int64(lapse)) {
			all = append(all, Gap{key, span})
		}
	}
	return all
}
