package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// tableFile is the file that -save writes.
const tableFile = "mutants.md"

// fileHead is the text above the table in the file.
const fileHead = `# Table of the mutants

"make mutants MUTANTS=-save=docs/results" has written this file. [mutants.md](../mutants.md) says what the columns mean.

`

// tableHead is the first lines of the table.
const tableHead = "| mutant | what is wrong with it | `holdfast verify` | found by | after | by the simulator |\n|---|---|---|---|--:|---|\n"

// row returns the line of a mutant in the table.
func (m mutant) row(v verdict) string {
	by, after, seen := "–", "–", m.unseen // if nobody has looked
	if v.took > 0 {
		by, after = strings.ReplaceAll(plan.List(v.broken()), ",", ", "), fmt.Sprintf("%.0f s", v.took.Seconds())
	}
	if m.unseen == "" {
		seen = v.seen.String()
	}
	return fmt.Sprintf("%s %s | %s | %s |\n", m.rowHead(), by, after, seen)
}

// rowHead returns the part of the line that is the same each time.
func (m mutant) rowHead() string {
	run := "–"
	if m.run != "" {
		run = "`" + m.run + "`"
	}
	return fmt.Sprintf("| %s | %s | %s |", m.name, m.wrong, run)
}

// tableFoot names the builds of the lines above. There are several builds if somebody has
// changed a file while mutants were tried.
func tableFoot(builds []string) string {
	return fmt.Sprintf("\nHoldfast %s, %s, %s/%s, %d processors.\n",
		strings.Join(builds, ", "), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}
