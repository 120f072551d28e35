package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/prover"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
)

// bench returns a lab for a test.
func bench(t *testing.T) *lab {
	t.Helper()
	root, err := repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &lab{root: root, folder: t.TempDir(), parallel: 2, limit: 2 * time.Minute}
}

// A mutant that does not apply, or does not compile, finds nothing out.
func TestMutantsCompile(t *testing.T) {
	l := bench(t)
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			overlay, err := m.overlay(l.root, l.folder)
			if err != nil {
				t.Fatal(err)
			}
			if err := prover.Compile(t.Context(), append([]string{"-overlay=" + overlay}, m.packages()...)...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMutantThatDoesNotApply(t *testing.T) {
	l := bench(t)
	for old, want := range map[string]string{"package ": "", "no such text": "0 times", "return": "times"} {
		m := mutant{name: "m", edits: []edit{{file: "do.go", old: old, new: "package "}}}
		_, err := m.overlay(l.root, l.folder)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", old, err)
		}
	}
}

// One is found here each time; "make mutants" tries them all.
func TestOneIsFound(t *testing.T) {
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

// What takes too long is interrupted, and ends what it has started.
func TestRunThatHangs(t *testing.T) {
	own := t.TempDir()
	t.Setenv("TMPDIR", own)
	l := bench(t)
	program, err := prover.Build(t.Context(), filepath.Join(l.folder, "sound"))
	if err != nil {
		t.Fatal(err)
	}
	l.limit = 5 * time.Second
	f, err := l.seek(t.Context(), program, "long", "--start redis --for 1h", func(finding) bool { return true })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not ended within 5s") {
		t.Errorf("a run of an hour comes to its end after %v with %v, %v", f.took, f.broken(), err)
	}
	if left, err := os.ReadDir(own); len(left) > 0 || err != nil {
		t.Errorf("it has left %v, %v", left, err)
	}
}

// What is not found is sought again, as long as there is time.
func TestSeek(t *testing.T) {
	const third = `#!/bin/sh
echo >> "$0.runs"
[ $(wc -l < "$0.runs") -lt 3 ] && exec echo '{}'
echo '{"violations": {"tokens": 2}}'
exit 1
`
	m := mutant{finds: check.Growing}
	for limit, want := range map[time.Duration]bool{time.Minute: true, 0: false} {
		l := &lab{folder: t.TempDir(), limit: limit}
		program := filepath.Join(l.folder, "third")
		if err := os.WriteFile(program, []byte(third), 0o700); err != nil {
			t.Fatal(err)
		}
		if f, _ := l.seek(t.Context(), prover.Program(program), "m", "", m.found); m.found(f) != want {
			t.Errorf("within %v it is found: %v, want %v", limit, !want, want)
		}
	}
}

func TestTableInAText(t *testing.T) {
	old := "# Title\n\n" + tableHead + "| a | b |\n| c | d |\n" + tableFoot([]string{"v1"}) + "\nThe end.\n"
	new := tableHead + "| new |\n" + tableFoot([]string{"v2", "v3"})
	got, err := withTable([]byte(old), []byte(new))
	if want := "# Title\n\n" + new + "\nThe end.\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, text := range []string{"no table\n", tableHead + "| of no build |\n\nThe end.\n"} {
		if got, err := withTable([]byte(text), nil); err == nil {
			t.Errorf("%q has become %q", text, got)
		}
	}
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"-run":                {"-run", "("},
		"unexpected argument": {"all"},
		"-parallel 0":         {"-parallel", "0"},
		"leave out -run":      {"-run", "a", "-save", "mutants.md"},
		"no such file":        {"-save", filepath.Join(t.TempDir(), "mutants.md")},
	} {
		if err := execute(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want one that has %q", args, err, want)
		}
	}
}

// The documents tell of each, and of which build the table is.
func TestMutantsAreInTheDocuments(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(bench(t).root, "docs", "mutants.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := withTable(text, nil); err != nil {
		t.Errorf("docs/mutants.md: %v", err)
	}
	for _, m := range mutants() {
		if !strings.Contains(string(text), m.rowHead()) {
			t.Errorf("docs/mutants.md does not tell of %s as it is", m.name)
		}
	}
}
