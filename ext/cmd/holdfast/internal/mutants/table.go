package main

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// tableHead is the first lines of the table.
const tableHead = "| mutant | what is wrong with it | `holdfast verify` | found by | after |\n|---|---|---|---|--:|\n"

// row is the line of a mutant in the table.
func (m mutant) row(f finding) string {
	return fmt.Sprintf("%s %s | %.0f s |\n", m.rowHead(), strings.ReplaceAll(plan.List(f.broken()), ",", ", "), f.took.Seconds())
}

// rowHead is the part of its line that is the same each time.
func (m mutant) rowHead() string { return fmt.Sprintf("| %s | %s | `%s` |", m.name, m.wrong, m.run) }

// tableFoot tells of which builds the lines above it are: of more than one if somebody
// has changed something while mutants were tried.
func tableFoot(builds []string) string {
	return fmt.Sprintf("\nHoldfast %s, %s, %s/%s, %d processors.\n",
		strings.Join(builds, ", "), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
}

var table = regexp.MustCompile(regexp.QuoteMeta(tableHead) + `(\|.*\n)*\nHoldfast .*\n`)

// withTable returns a text with another table in the place of the one that it has.
func withTable(text, other []byte) ([]byte, error) {
	at := table.FindIndex(text)
	if at == nil {
		return nil, errors.New("it has no table of mutants, with the build below it")
	}
	return slices.Concat(text[:at[0]], other, text[at[1]:]), nil
}
