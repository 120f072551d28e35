package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/prover"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
)

// bench returns a lab for a test.
func bench(t *testing.T) *lab {
	t.Helper()
	root, err := repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &lab{root: root, folder: t.TempDir(), parallel: 2, limit: 10 * time.Minute}
}

// A mutant that does not apply, or does not compile, finds nothing out. To compile them
// all takes minutes: make prove.
func TestMutantsCompile(t *testing.T) {
	l := bench(t)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay, err := m.overlay(l.root, l.folder)
			if err != nil {
				t.Fatal(err)
			}
			if testing.Short() {
				return
			}
			if err := prover.Compile(t.Context(), append([]string{"-overlay=" + overlay}, m.packages()...)...); err != nil {
				t.Error(err)
			}
		})
	}
}

// One is found here each time; "make mutants" tries them all.
func TestOneIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 40 s: make prove")
	}
	t.Parallel()
	const name = "same-token-in-hand-over"
	m := mutants()[slices.IndexFunc(mutants(), func(m mutant) bool { return m.name == name })]
	f, err := bench(t).try(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if !m.found(f) {
		t.Errorf("%s has survived: %v", name, f.Violations)
	}
	if commit, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--short=12", "HEAD").Output(); err == nil &&
		!strings.Contains(f.Build, strings.TrimSpace(string(commit))) {
		t.Errorf("the build %q does not tell of the commit %s", f.Build, commit)
	}
}

// A run that takes too long is interrupted, and ends its own processes.
func TestRunThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s: make prove")
	}
	own := t.TempDir()
	t.Setenv("TMPDIR", own)
	l := bench(t)
	program, err := prover.Build(t.Context(), filepath.Join(l.folder, "sound"))
	if err != nil {
		t.Fatal(err)
	}
	l.limit = 5 * time.Second
	f, err := l.seek(t.Context(), l.verifier(program, "long", "--start redis --for 1h"), func(finding) bool { return true })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not ended within 5s") {
		t.Errorf("a run of an hour comes to its end after %v with %v, %v", f.took, f.broken(), err)
	}
	if left, err := os.ReadDir(own); len(left) > 0 || err != nil {
		t.Errorf("it has left %v, %v", left, err)
	}
}

// A mutant that is not found is tried again while there is time.
func TestSeek(t *testing.T) {
	m := mutant{finds: check.Growing}
	for limit, want := range map[time.Duration]bool{time.Minute: true, 40 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			third := func(context.Context) (*verify.Report, error) {
				time.Sleep(15 * time.Second)
				runs++
				return &verify.Report{Violations: map[check.Promise]int{check.Growing: runs / 3}}, nil
			}
			l := &lab{limit: limit}
			if f, err := l.seek(t.Context(), third, m.found); m.found(f) != want || err != nil {
				t.Errorf("within %v it is found: %v, %v, want %v", limit, !want, err, want)
			}
		})
	}
}

// A mutant is found by a check that shows it, and if nothing is found without it.
func TestSightings(t *testing.T) {
	m := mutant{name: "m", sim: search{"TestSeeds", []string{"told", "order"}}}
	for seen, want := range map[string]bool{"": false, "told": true, "order": true, "left": false} {
		if err := m.convicts(sighting{check: seen}); (err == nil) != want {
			t.Errorf("seen by %q: %v, want it found: %v", seen, err, want)
		}
	}
	if err := m.acquits(sighting{}); err != nil {
		t.Error(err)
	}
	if err := m.acquits(sighting{check: "told"}); err == nil {
		t.Error("what is found without the mutant does not matter")
	}
}

// Of each mutant the table says which test of the simulator finds it, or why none does.
func TestSimulatorIsSaidToFind(t *testing.T) {
	for _, m := range mutants() {
		if (m.sim.test == "") == (m.unseen == "") || (m.sim.test == "") != (len(m.sim.checks) == 0) {
			t.Errorf("%s: either a test of the simulator with its checks or a reason has to be given", m.name)
		}
	}
}

// The simulator finds each mutant that it is said to find. Each mutant has to be compiled. In make
// test, sim.TestSlowStartIsJudged plants the mistake of the first mutant.
func TestSimulatorFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles each mutant: make prove")
	}
	l := bench(t)
	sound, err := l.simulator(t.Context(), "sound")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants() {
		if m.unseen != "" {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			s, err := l.simulate(t.Context(), sound, m)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(s)
		})
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"-run":                {"-run", "("},
		"unexpected argument": {"all"},
		"-parallel 0":         {"-parallel", "0"},
		"no mutant has":       {"-run", "nothing like it"},
		"nothing to -save":    {"-overlay", "x", "-save", "x"},
		"no such file":        {"-save", filepath.Join(t.TempDir(), "none")},

		"2: deadline-from-reply, deadline-with-grace": {"-overlay", t.TempDir(), "-run", "^deadline"},
	} {
		if err := execute(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want one that has %q", args, err, want)
		}
	}
}

// The overlay of a mutant has the edited text in place of the file of this repository.
func TestOverlay(t *testing.T) {
	var out strings.Builder
	if err := execute(t.Context(), []string{"-run", "^loss-is-silent$", "-overlay", t.TempDir()}, &out); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Replace map[string]string }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(list.Replace[filepath.Join(bench(t).root, "internal", "engine", "release.go")])
	if err != nil || !strings.Contains(string(text), "_ = contexts\n") || len(list.Replace) != 1 {
		t.Errorf("the list %s leads to %q, %v", data, text, err)
	}
}

// The saved table has a line for each mutant as it is, and every mutant was found.
func TestSavedTable(t *testing.T) {
	file := filepath.Join(bench(t).root, "docs", "results", tableFile)
	table, err := readRows(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants() {
		if row := table[m.name]; row == "" || strings.Contains(row, survived) {
			t.Errorf("%s does not say that %s was found: make mutants MUTANTS='-run=%[2]s -save=docs/results'", tableFile, m.name)
		}
	}
	again := filepath.Join(t.TempDir(), tableFile)
	if err := table.write(again); err != nil {
		t.Fatal(err)
	}
	saved, _ := os.ReadFile(file)
	if written, _ := os.ReadFile(again); !bytes.Equal(written, saved) {
		t.Errorf("%s has more, or in another order, than its lines of the mutants", tableFile)
	}
}

// A line of a mutant that has changed is gone, and a missing file has no lines.
func TestReadRows(t *testing.T) {
	file := filepath.Join(t.TempDir(), tableFile)
	if table, err := readRows(file); err != nil || len(table) > 0 {
		t.Errorf("without a file: %v, %v", table, err)
	}
	now, changed := mutants()[0], mutants()[1]
	changed.wrong = "something else"
	lines := now.row(verdict{commit: "c0ffee"}) + changed.row(verdict{commit: "c0ffee"})
	if err := os.WriteFile(file, []byte(fileHead+tableHead+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	if table, err := readRows(file); err != nil || len(table) != 1 || table[now.name] != now.row(verdict{commit: "c0ffee"}) {
		t.Errorf("the lines read are %v, %v", table, err)
	}
}

// A mutant that has survived is an error, and its line says so.
func TestCollect(t *testing.T) {
	all := mutants()[:2]
	verdicts := []chan verdict{make(chan verdict, 1), make(chan verdict, 1)}
	verdicts[1] <- verdict{commit: "c0ffee", err: fmt.Errorf("it %w", errSurvived)}
	verdicts[0] <- verdict{commit: "c0ffee"}
	var out strings.Builder
	tried, err := collect(t.Context(), &out, all, verdicts)
	if !errors.Is(err, errSurvived) || len(tried) != 2 {
		t.Errorf("%d lines and the error %v, want two and that of the second", len(tried), err)
	}
	for i, m := range all {
		row := tried[m.name]
		if got := strings.Contains(row, survived); got != (i == 1) || !strings.Contains(out.String(), row) || !strings.Contains(row, "c0ffee") {
			t.Errorf("mutant %d has the line %q", i, row)
		}
	}
}
