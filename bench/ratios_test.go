package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// read returns a document, whose path is that from the root of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRatiosOfTheDocuments wants the figures of the documents to be those of the saved tables.
func TestRatiosOfTheDocuments(t *testing.T) {
	text := read(t, "docs/results/"+tablesFile)
	speed, fairness := ratios(text)
	for file, tables := range map[string][]string{"README.md": {speed, fairness}, "docs/bench.md": {summary(text)}} {
		for _, want := range tables {
			if !strings.Contains(read(t, file), want) {
				t.Errorf("%s lacks the table of the saved figures:\n%s", file, want)
			}
		}
	}
}

// TestLeadersOfTheReadme wants the README to say how far others lead in hand-offs, as the
// saved tables have it.
func TestLeadersOfTheReadme(t *testing.T) {
	tables, readme := readTables(read(t, "docs/results/"+tablesFile)), read(t, "README.md")
	for _, leader := range []struct{ store, side string }{
		{"Files", "gofrs/flock"}, {"PostgreSQL, rows", "pg_advisory_lock on pgx"}, {"MariaDB, rows", "GET_LOCK on go-sql-driver"},
	} {
		s, ok := find(tables, leader.store, "hand-off")
		if !ok {
			t.Errorf("the tables lack %s", leader.store)
		} else if want := timesAsFast(s.row(leader.side), s.bench) + " times"; !strings.Contains(readme, want) {
			t.Errorf("README.md does not say that %s is %s as fast", leader.side, want)
		}
	}
}

func TestRatiosOfNothing(t *testing.T) {
	speed, fairness := ratios("")
	if strings.Count(speed, "–") != len(peers)*len(ratioRows) || strings.Count(fairness, "\n") != 2 {
		t.Errorf("of no tables:\n%s\n%s", speed, fairness)
	}
	if all := summary(""); strings.Count(all, "\n") != 2 {
		t.Errorf("of no tables:\n%s", all)
	}
}
