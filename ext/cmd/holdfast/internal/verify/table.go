package verify

import (
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// table is the report as a table, with its head: a line for what came before any
// fault, one for each nemesis, and one for all together.
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

// row is one line.
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

// verdict says what a check has found, in a part of the run or all of it.
func (r *Report) verdict(t Tally, p check.Promise) string {
	switch {
	case t.Violations[p] > 0:
		return fmt.Sprintf("%d BROKEN", t.Violations[p])
	case t.Waived[p] > 0:
		return fmt.Sprintf("(%d)", t.Waived[p])
	case r.Unchecked[p] != "":
		return "–"
	}
	return "ok"
}
