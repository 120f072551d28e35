package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bench returns a lab for a test.
func bench(t *testing.T) *lab {
	t.Helper()
	root, err := repository(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &lab{root: root, folder: t.TempDir()}
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
			if err := l.do(t.Context(), append([]string{"build", "-overlay=" + overlay}, m.packages()...)...); err != nil {
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
	if !slices.Contains(f.broken(), m.finds) {
		t.Errorf("%s has survived: %v", name, f.Violations)
	}
}

// The documents tell of each.
func TestMutantsAreInTheDocuments(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(bench(t).root, "docs", "mutants.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants() {
		if !strings.Contains(string(text), "| "+m.name+" | "+m.wrong+" | `"+m.run+"` |") {
			t.Errorf("docs/mutants.md does not tell of %s as it is", m.name)
		}
	}
}
