package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRatiosOfTheReadme wants the figures of the README to be those of the saved tables.
func TestRatiosOfTheReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "results", tablesFile))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	speed, fairness := ratios(string(text))
	for _, want := range []string{speed, fairness} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("README.md lacks the table of the saved figures:\n%s", want)
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
}
