package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRatiosOfTheDocuments wants the figures of the documents to be those of the saved tables.
func TestRatiosOfTheDocuments(t *testing.T) {
	read := func(at ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{".."}, at...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := read("docs", "results", tablesFile)
	speed, fairness := ratios(text)
	for file, tables := range map[string][]string{"README.md": {speed, fairness}, "docs/bench.md": {summary(text)}} {
		for _, want := range tables {
			if !strings.Contains(read(file), want) {
				t.Errorf("%s lacks the table of the saved figures:\n%s", file, want)
			}
		}
	}
}

// TestLeadersOfTheReadme wants the README to say how far others lead in hand-offs, as the
// saved tables have it.
func TestLeadersOfTheReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "results", tablesFile))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, leader := range []struct{ store, side string }{
		{"Files", "gofrs/flock"}, {"PostgreSQL, rows", "pg_advisory_lock on pgx"}, {"MariaDB, rows", "GET_LOCK on go-sql-driver"},
	} {
		found := false
		for _, s := range readTables(string(text)) {
			if s.store.Title != leader.store || s.bench.name != "hand-off" {
				continue
			}
			found = true
			if want := timesAsFast(s.row(leader.side), s.bench) + " times"; !strings.Contains(string(readme), want) {
				t.Errorf("README.md does not say that %s is %s as fast", leader.side, want)
			}
		}
		if !found {
			t.Errorf("the tables lack %s", leader.store)
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
