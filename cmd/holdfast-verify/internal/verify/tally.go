package verify

import (
	"slices"
	"sort"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// A Tally counts the events after faults of one kind, up to the next fault. A loss counts
// for the last fault that concerns the worker. A waived violation counts for the fault that
// the store does not promise to stand.
type Tally struct {
	Operations int                   `json:"operations"`
	Grants     int                   `json:"grants"`
	Losses     int                   `json:"losses"`
	Violations map[check.Promise]int `json:"violations,omitempty"`
	Waived     map[check.Promise]int `json:"not_promised,omitempty"`
	Longest    float64               `json:"longest_unavailable_seconds"`
}

func newTally() Tally {
	return Tally{Violations: make(map[check.Promise]int), Waived: make(map[check.Promise]int)}
}

// after returns the tally of a fault; without a fault, the tally of the time before.
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

// meet adds the nemeses of faults that the run has met besides its own.
func (r *Report) meet(faults []check.Fault) {
	for _, f := range faults {
		if !slices.ContainsFunc(r.Nemeses, func(n Nemesis) bool { return n.Name == f.Nemesis }) {
			r.Nemeses = append(r.Nemeses, Nemesis{Name: f.Nemesis, Tally: newTally()})
		}
	}
}

// anyWorker stands for every worker.
const anyWorker = -1

// lastBefore returns the last fault that began before a time and concerns a worker, nil
// without such a fault. Faults are in order.
func lastBefore(faults []check.Fault, at int64, worker int) *check.Fault {
	n := sort.Search(len(faults), func(i int) bool { return faults[i].From >= at })
	for i, f := range slices.Backward(faults[:n]) {
		if worker == anyWorker || f.Worker < 0 || f.Worker == worker {
			return &faults[i]
		}
	}
	return nil
}

// count adds up the events of the run.
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
		t := at(g.From + (g.To-g.From)/2) // a gap may begin just before its cause
		t.Longest = max(t.Longest, shown.Seconds(g.Length()))
		if s := shown.Seconds(g.Length()); s > r.Longest.Seconds {
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

// countFaults counts the faults, and the faults that met a worker at work.
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

// hits reports whether a fault came while a lock was requested or held. The lock must be of
// the harmed worker, or of any worker if the fault harmed a server that matters. An
// eviction must have evicted the held lock, and a network fault must have touched traffic.
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
