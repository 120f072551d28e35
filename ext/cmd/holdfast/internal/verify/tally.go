package verify

import (
	"slices"
	"sort"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// A Tally is what happened after faults of one kind, and before the next fault.
// Losses are put down to the last fault that concerns their worker, and what was not
// promised to the fault for which it is not.
type Tally struct {
	Operations int                   `json:"operations"`
	Grants     int                   `json:"grants"`
	Losses     int                   `json:"losses"`
	Violations map[check.Promise]int `json:"violations,omitempty"`
	Waived     map[check.Promise]int `json:"not_promised,omitempty"`
	Longest    float64               `json:"longest_unavailable_seconds"`
}

func (t *Tally) violate(p check.Promise) {
	if t.Violations == nil {
		t.Violations = make(map[check.Promise]int)
	}
	t.Violations[p]++
}

func (t *Tally) waive(p check.Promise) {
	if t.Waived == nil {
		t.Waived = make(map[check.Promise]int)
	}
	t.Waived[p]++
}

// after is the tally of a fault; without one, of what came before any.
func (r *Report) after(f *check.Fault) *Tally {
	if f != nil {
		for i := range r.Nemeses {
			if r.Nemeses[i].Name == f.Nemesis {
				return &r.Nemeses[i].Tally
			}
		}
	}
	return &r.Before
}

// anyWorker stands for all of them.
const anyWorker = -1

// lastBefore is the last fault that began before a time and concerns a worker, nil
// if there is none. Faults are in order.
func lastBefore(faults []check.Fault, at int64, worker int) *check.Fault {
	n := sort.Search(len(faults), func(i int) bool { return faults[i].From >= at })
	for i, f := range slices.Backward(faults[:n]) {
		if worker == anyWorker || f.Worker < 0 || f.Worker == worker {
			return &faults[i]
		}
	}
	return nil
}

// count adds up what there was.
func (r *Report) count(run *check.Run) {
	at := func(when int64) *Tally { return r.after(lastBefore(run.Faults, when, anyWorker)) }
	type operation struct {
		who check.Who
		op  int
	}
	known := make(map[operation]bool)
	for _, h := range run.Holds {
		if id := (operation{h.Who, h.Op}); !known[id] {
			known[id] = true
			r.Operations++
			at(h.Asked).Operations++
		}
		if h.Got != check.Never {
			r.Grants++
			at(h.Got).Grants++
		}
		if h.Lost != check.Never {
			r.Losses++
			r.after(lastBefore(run.Faults, h.Lost, h.Who.Worker)).Losses++
		}
	}
	for _, g := range run.Gaps() {
		t := at(g.From + (g.To-g.From)/2) // it may begin just before what it comes from
		t.Longest = max(t.Longest, g.Length().Seconds())
		if s := g.Length().Seconds(); s > r.Longest.Seconds {
			r.Longest = Gap{Key: g.Key, Seconds: s}
		}
	}
	r.Effects = len(run.Effects)
	for _, a := range run.Accesses {
		if a.No && !a.Unknown {
			r.Refused++
		}
	}
	r.countFaults(run)
}

// countFaults counts what was done, and what of it met somebody at work.
func (r *Report) countFaults(run *check.Run) {
	for i, n := range r.Nemeses {
		for _, f := range run.Faults {
			if f.Nemesis == n.Name {
				r.Nemeses[i].Faults++
				if slices.ContainsFunc(run.Holds, func(h *check.Hold) bool { return hits(f, h) }) {
					r.Nemeses[i].Hits++
				}
			}
		}
	}
}

// hits reports whether a fault came while its worker, or any if it harmed a
// server that matters, asked for a lock or held it. Evictions have to be of what was
// held, and faults of the network must have touched something that passed.
func hits(f check.Fault, h *check.Hold) bool {
	from := h.Asked
	if !f.Matters() || plan.Nemesis(f.Nemesis).Network() && f.Touched == 0 {
		return false
	}
	if f.Nemesis == string(plan.Evict) {
		if from = h.Got; !slices.Contains(f.Evicted, h.Key) {
			return false
		}
	}
	return (f.Worker < 0 || h.Who.Worker == f.Worker) && check.Span{From: from, To: min(h.Freed, h.Refused, h.Died)}.Overlaps(f.Span)
}
