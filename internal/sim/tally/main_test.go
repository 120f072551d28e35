package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/sim"
)

// The tables have a row of each test, and the sum of all.
func TestTables(t *testing.T) {
	folder := t.TempDir()
	for i, test := range tests {
		text, err := json.Marshal(sim.Count{Seeds: int64(i + 1), Kills: 2, Virtual: time.Hour, Idle: time.Duration(i) * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, test+".json"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := read(folder)
	if err != nil {
		t.Fatal(err)
	}
	text := string(tables(rows))
	for _, want := range []string{
		"| TestSeeds | 1 | 1.0 | 0 | 0 | 0 | 0 | 0 | – |\n",
		"| TestSQL | 6 | 1.0 | 0 | 0 | 0 | 0 | 0 | 5s |\n",
		"| all | 45 | 9.0 | 0 | 0 | 0 | 0 | 0 | 8s |\n",
		"| all | 0 | 0 | 18 | 0 | 0 | 0 |\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

// A test that has left no counts is an error.
func TestMissingCounts(t *testing.T) {
	if _, err := read(t.TempDir()); err == nil {
		t.Error("tests without counts are taken")
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{"x"}, {"-for=x"}} {
		if err := execute(t.Context(), args, nil); err == nil {
			t.Errorf("%q are taken", args)
		}
	}
}
