package verify

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// table returns the report as a table with a head: a line for the time before the first
// fault, a line for each nemesis, and a line for the total.
func (r *Report) table() [][]string {
	head := []string{"store", "nemesis", "faults", "hits", "operations", "grants", "losses"}
	for _, p := range check.Promises() {
		head = append(head, string(p))
	}
	rows := [][]string{append(head, "longest gap")}
	all := Nemesis{Name: "all", Tally: Tally{
		Operations: r.Operations, Grants: r.Grants, Losses: r.Losses,
		Violations: r.Violations, Waived: r.Waived, Longest: r.Longest.Seconds,
	}}
	if len(r.Nemeses) > 0 {
		rows = append(rows, r.row(Nemesis{Name: plan.None, Tally: r.Before}))
	} else {
		all.Name = plan.None
	}
	for _, n := range r.Nemeses {
		all.Faults, all.Hits = all.Faults+n.Faults, all.Hits+n.Hits
		rows = append(rows, r.row(n))
	}
	return append(rows, r.row(all))
}

// row returns a line of the table.
func (r *Report) row(n Nemesis) []string {
	cells := []string{r.Store, n.Name}
	for _, count := range []int{n.Faults, n.Hits, n.Operations, n.Grants, n.Losses} {
		cells = append(cells, strconv.Itoa(count))
	}
	for _, p := range check.Promises() {
		cells = append(cells, r.verdict(n.Tally, p))
	}
	return append(cells, time.Duration(n.Longest*float64(time.Second)).Round(time.Millisecond).String())
}

// verdict returns the finding of a check, for a part of the run or for the total. Without
// an operation, a check has nothing to look at.
func (r *Report) verdict(t Tally, p check.Promise) string {
	switch {
	case t.Violations[p] > 0:
		return fmt.Sprintf("%d BROKEN", t.Violations[p])
	case t.Waived[p] > 0:
		return fmt.Sprintf("(%d)", t.Waived[p])
	case r.Unchecked[p] != "" || t.Operations == 0:
		return "–"
	}
	return "ok"
}
