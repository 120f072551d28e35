package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Unchecked returns the promises that the history has not tested, with the reasons: a check
// that has nothing to look at finds nothing. waits are the waits that Progress has judged,
// with its bound.
func (r *Run) Unchecked(ttl, slack time.Duration, waits Waits, bound time.Duration) map[Promise]string {
	all := make(map[Promise]string)
	granted := func(of func(*Hold) bool) bool {
		return slices.ContainsFunc(r.Holds, func(h *Hold) bool { return h.Got != Never && of(h) })
	}
	if !r.contended() {
		all[Exclusive] = "no worker requested a held lock"
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
	switch {
	case waits.All == 0:
		all[Lively] = "nobody has waited for a lock"
	case !waits.enough(r.length(), bound):
		all[Lively] = "so much was excused of all waiting that a key could have been out of reach to the end"
	}
	if len(r.Results) == 0 {
		all[Single] = "no effect had a result"
	}
	return all
}

// contended reports whether a lock was requested while the key had a holder.
func (r *Run) contended() bool {
	for _, asked := range byKey(r.Holds, func(h *Hold) string { return h.Key }) {
		got := slices.Clone(asked)
		slices.SortFunc(asked, func(a, b *Hold) int { return cmp.Compare(a.Asked, b.Asked) })
		slices.SortFunc(got, func(a, b *Hold) int { return cmp.Compare(a.Got, b.Got) })
		until := int64(0)
		for _, h := range asked {
			for ; len(got) > 0 && got[0].Got < h.Asked; got = got[1:] {
				until = max(until, got[0].end(0))
			}
			if h.Asked < until {
				return true
			}
		}
	}
	return false
}
