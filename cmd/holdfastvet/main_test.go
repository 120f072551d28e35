package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/holdfast-go/holdfast/cmd/holdfastvet/internal/rules"
)

// TestChosen finds the optional rules only where the arguments name them.
func TestChosen(t *testing.T) {
	usual := slices.Clone(rules.Usual)
	for args, want := range map[string][]*analysis.Analyzer{
		"./...":           usual,
		"opentx":          usual, // a package
		"-commit ./...":   usual,
		"-V=full":         usual,
		"-opentx ./...":   append(usual, rules.OpenTx),
		"--opentx=true x": append(usual, rules.OpenTx),
		"-opentx vet.cfg": append(usual, rules.OpenTx),
		"-flags":          rules.All,
		"help opentx":     rules.All,
	} {
		if got := chosen(strings.Fields(args)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
}

// TestVettool runs the program as "go vet" does.
func TestVettool(t *testing.T) {
	if testing.Short() {
		t.Skip("analyses the standard library, which takes ten seconds with an empty cache")
	}
	dir := t.TempDir()
	tool := filepath.Join(dir, "holdfastvet.exe")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for name, text := range map[string]string{
		"go.mod":  "module example.com/lock\n\ngo 1.25.0\n",
		"lock.go": "package lock\n\nimport \"database/sql\"\n\nfunc lock(db *sql.DB) {\n\t_, _ = db.Exec(\"SELECT pg_advisory_lock(1)\")\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	vet := exec.Command("go", "vet", "-vettool="+tool, ".")
	vet.Dir, vet.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := vet.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "lock.go:6:9: pg_advisory_lock on a pool") {
		t.Errorf("go vet: %v, want a finding in lock.go:6:9\n%s", err, out)
	}
}
