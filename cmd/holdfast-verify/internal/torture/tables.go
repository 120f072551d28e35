package main

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/publish"
)

// verdict returns the findings of the checks: broken promises, and in brackets violations
// that the store has not promised to prevent.
func (r result) verdict() string {
	var found []string
	for _, p := range check.Promises() {
		if n := r.Report.Violations[p]; n > 0 {
			found = append(found, fmt.Sprintf("%s %d BROKEN", p, n))
		}
		if n := r.Report.Waived[p]; n > 0 {
			found = append(found, fmt.Sprintf("%s (%d)", p, n))
		}
	}
	switch lacks := r.lacks(); {
	case lacks == "":
	case errors.Is(r.Report.Err(), verify.ErrUngranted):
		found = append(found, "nothing was granted: "+lacks)
	default:
		found = append(found, "nothing is proved: "+lacks)
	}
	if len(found) == 0 {
		return "ok"
	}
	return strings.Join(found, ", ")
}

// cell returns the verdict in as few letters as the matrix has room for.
func (r result) cell() string {
	switch {
	case r.Report == nil:
		return "not done"
	case r.unproved():
		return "unproved"
	case r.Report.Err() != nil:
		return "**BROKEN**"
	case r.trial.stands:
		return "held"
	}
	seen := 0
	for _, n := range r.Report.Waived {
		seen += n
	}
	return fmt.Sprintf("(%d)", seen)
}

// tables writes the results of a pass. command repeats the pass. part says that the pass had only
// a part of the stores or faults.
func tables(command string, part bool, results []result) []byte {
	var b bytes.Buffer
	title, note := "Tables of the torture", ""
	if part {
		title, note = "Tables of a part of the torture", fmt.Sprintf(partNote, strings.Join(stores(results), ", "), len(results))
	}
	fmt.Fprintf(&b, tablesHead, title, note, told(results, func(r *verify.Report) string { return r.Build }),
		strings.TrimSpace(runtime.Version()), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), command)
	writeTotals(&b, results)
	writeMatrix(&b, results)
	for _, store := range stores(results) {
		writeRuns(&b, store, slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.trial.store != store }))
	}
	return b.Bytes()
}

const partNote = `
**This is a part of the torture**, not a whole pass: %s, %d runs. The command chooses them.
`

const tablesHead = `# %s

"make torture" has written this file. [torture.md](../torture.md) says what the figures mean.
%s
Holdfast %s, %s, %s/%s, %d processors. The same operations and faults again:

    %s

`

// told joins a detail of the reports, without repetition.
func told(results []result, what func(*verify.Report) string) string {
	var all []string
	for _, r := range results {
		if r.Report != nil && what(r.Report) != "" && !slices.Contains(all, what(r.Report)) {
			all = append(all, what(r.Report))
		}
	}
	return strings.Join(all, ", ")
}

// stores returns the stores of the results, in order.
func stores(results []result) (names []string) {
	for _, r := range results {
		names = append(names, r.trial.store)
	}
	return slices.Compact(names)
}

// writeTotals adds everything up.
func writeTotals(b *bytes.Buffer, results []result) {
	var again, operations, grants, losses, refused, writes, stale, lost int
	faults, hits := make(map[string]int), make(map[string]int)
	for _, r := range results {
		if r.Report == nil {
			continue
		}
		if r.Again {
			again++
		}
		operations += r.Report.Operations
		grants += r.Report.Grants
		losses += r.Report.Losses
		refused += r.Report.Refused
		writes += r.Report.Plain.Writes
		stale += r.Report.Plain.Stale
		lost += r.Report.Plain.Lost
		for _, n := range r.Report.Nemeses {
			faults[n.Name] += n.Faults
			hits[n.Name] += n.Hits
		}
	}
	fmt.Fprint(b, "## Totals\n\n")
	publish.Head(b, "runs", strconv.Itoa(len(results)))
	for _, line := range []struct {
		name  string
		count int
	}{
		{"runs that had proved nothing, and were done again with nothing beside them", again},
		{"operations", operations},
		{"locks that were granted", grants},
		{"locks that were lost, and told so", losses},
		{"accesses with an old token, which the fence has refused", refused},
		{"writes to the registers without a fence", writes},
		{"of these, stale: a fence would have refused them", stale},
		{"updates that such writes have undone", lost},
	} {
		publish.Row(b, line.name, publish.Thousands(line.count))
	}
	fmt.Fprintln(b)
	publish.Head(b, "fault", "done", "while its victim was at work")
	for _, n := range plan.Nemeses() {
		if faults[string(n)] > 0 {
			publish.Row(b, "`"+string(n)+"`", publish.Thousands(faults[string(n)]), publish.Thousands(hits[string(n)]))
		}
	}
	fmt.Fprintln(b)
	writeChecks(b, results)
}

// writeChecks writes for each check in how many runs the check had something to look at,
// and the violations found there.
func writeChecks(b *bytes.Buffer, results []result) {
	publish.Head(b, "check", "runs that it could judge", "broken", "not promised")
	for _, p := range check.Promises() {
		var judged, broken, waived int
		for _, r := range results {
			if r.Report == nil {
				continue
			}
			if r.Report.Unchecked[p] == "" && !r.unproved() {
				judged++
			}
			broken += r.Report.Violations[p]
			waived += r.Report.Waived[p]
		}
		publish.Row(b, "`"+string(p)+"`", publish.Thousands(judged), publish.Thousands(broken), publish.Thousands(waived))
	}
	fmt.Fprintln(b)
}

// writeMatrix shows the verdict on each store with each fault.
func writeMatrix(b *bytes.Buffer, results []result) {
	shown := slices.DeleteFunc(columns(), func(c string) bool {
		return !slices.ContainsFunc(results, func(r result) bool { return r.trial.faults == c })
	})
	fmt.Fprint(b, "## Stores and faults\n\n")
	publish.Head(b, append([]string{""}, shown...)...)
	for _, store := range stores(results) {
		cells := []string{store}
		for _, c := range shown {
			i := slices.IndexFunc(results, func(r result) bool { return r.trial.store == store && r.trial.faults == c })
			if i < 0 {
				cells = append(cells, "–")
			} else {
				cells = append(cells, results[i].cell())
			}
		}
		publish.Row(b, cells...)
	}
	fmt.Fprintln(b)
}

const runsHead = `| fault | checks | done | hits | operations | grants | losses | refused | writes | stale | lost | longest gap | again |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|
`

// writeRuns shows the runs of a store.
func writeRuns(b *bytes.Buffer, store string, results []result) {
	fmt.Fprintf(b, "## %s\n\n", store)
	if servers := told(results, func(r *verify.Report) string { return r.Server }); servers != "" {
		fmt.Fprintf(b, "%s.\n\n", servers)
	}
	fmt.Fprint(b, runsHead)
	for _, r := range results {
		if r.Report == nil {
			publish.Row(b, r.trial.faults, "not done", "", "", "", "", "", "", "", "", "", "", "`"+r.Command+"`")
			continue
		}
		done, hits := r.met()
		cells := []string{r.trial.faults, r.verdict(), publish.Thousands(done), hits}
		for _, n := range []int{
			r.Report.Operations, r.Report.Grants, r.Report.Losses, r.Report.Refused,
			r.Report.Plain.Writes, r.Report.Plain.Stale, r.Report.Plain.Lost,
		} {
			cells = append(cells, publish.Thousands(n))
		}
		publish.Row(b, append(cells, r.gap().String(), "`"+r.Command+"`")...)
	}
	fmt.Fprintln(b)
	writeUnchecked(b, results)
}

// writeUnchecked writes which checks had nothing to look at in the runs of a store, or in
// which few runs the check had something.
func writeUnchecked(b *bytes.Buffer, results []result) {
	for _, p := range check.Promises() {
		var checked, unchecked []string
		why := ""
		for _, r := range results {
			switch {
			case r.Report == nil || r.unproved():
			case r.Report.Unchecked[p] == "":
				checked = append(checked, r.trial.faults)
			default:
				unchecked, why = append(unchecked, r.trial.faults), r.Report.Unchecked[p]
			}
		}
		switch {
		case len(unchecked) == 0:
		case len(checked) == 0:
			fmt.Fprintf(b, "In none of these runs `%s` was checked: %s.\n\n", p, why)
		case len(checked) < len(unchecked):
			fmt.Fprintf(b, "Only with %s `%s` was checked: %s.\n\n", strings.Join(checked, ", "), p, why)
		default:
			fmt.Fprintf(b, "With %s `%s` was not checked: %s.\n\n", strings.Join(unchecked, ", "), p, why)
		}
	}
}

// met returns how many faults were done, and how many faults have met a worker at work. If
// several nemeses are done together, hits also lists the number for each nemesis.
func (r result) met() (done int, hits string) {
	sum := 0
	var each []string
	for _, n := range r.Report.Nemeses {
		done, sum = done+n.Faults, sum+n.Hits
		each = append(each, fmt.Sprintf("%s %d", n.Name, n.Hits))
	}
	if hits = publish.Thousands(sum); r.Report.Nemeses != nil && r.trial.faults != r.Report.Nemeses[0].Name {
		hits += ": " + strings.Join(each, ", ")
	}
	return done, hits
}
