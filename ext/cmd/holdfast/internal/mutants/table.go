package main

import (
	"bytes"
	"errors"
	"fmt"
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

// withTable returns a text with another table in the place of the one that it has.
func withTable(text, table []byte) ([]byte, error) {
	before, rest, found := bytes.Cut(text, []byte(tableHead))
	_, after, ends := bytes.Cut(rest, []byte("|\n\n"))
	if !found || !ends {
		return nil, errors.New("it has no table of mutants")
	}
	return bytes.Join([][]byte{before, table, []byte("\n"), after}, nil), nil
}
