package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
const tableHead = "| mutant | what is wrong with it | `holdfast verify` | found by | after | by the simulator | at |\n|---|---|---|---|--:|---|---|\n"

// survived marks the line of a mutant that was not found.
const survived = "not found"

// row returns the line of a mutant in the table.
func (m mutant) row(v verdict) string {
	by, after, seen := "–", "–", m.unseen // if nobody has looked
	if v.took > 0 {
		by, after = strings.ReplaceAll(plan.List(v.broken()), ",", ", "), fmt.Sprintf("%.0f s", v.took.Seconds())
	}
	if errors.Is(v.err, errSurvived) {
		by = survived
	}
	if m.unseen == "" {
		seen = v.seen.String()
	}
	return fmt.Sprintf("%s %s | %s | %s | %s |\n", m.rowHead(), by, after, seen, v.commit)
}

// rowHead returns the part of the line that is the same each time.
func (m mutant) rowHead() string {
	run := "–"
	if m.run != "" {
		run = "`" + m.run + "`"
	}
	return fmt.Sprintf("| %s | %s | %s |", m.name, m.wrong, run)
}

// describes reports whether a line is of the mutant as it is now.
func (m mutant) describes(line string) bool {
	return strings.HasPrefix(line, m.rowHead()) && (m.unseen == "" || strings.Contains(line, " | "+m.unseen+" | "))
}

// rows are lines of the table, by the name of the mutant.
type rows map[string]string

// readRows reads the lines of a file, which may be missing. The lines of mutants with other
// words or flags are left out.
func readRows(file string) (rows, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := rows{}
	for line := range strings.Lines(string(text)) {
		if i := slices.IndexFunc(mutants(), func(m mutant) bool { return m.describes(line) }); i >= 0 {
			all[mutants()[i].name] = line
		}
	}
	return all, nil
}

// write writes a file with the lines, in the order of the mutants.
func (r rows) write(file string) error {
	text := fileHead + tableHead
	for _, m := range mutants() {
		text += r[m.name]
	}
	return os.WriteFile(file, []byte(text), 0o644)
}
