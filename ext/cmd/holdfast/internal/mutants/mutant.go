package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
)

// A mutant is Holdfast with one thing wrong with it.
type mutant struct {
	name  string
	wrong string // for people
	edits []edit
	run   string        // flags of the verify that finds it
	finds check.Promise // the check that does, by what it looks at
}

// An edit is what is different in a file, in which the old text stands once.
type edit struct{ file, old, new string }

// mutants returns all mutants.
func mutants() []mutant {
	return slices.Concat(engine, above, redis, redlocks, sql, sessions, etcd, plain, fence)
}

// found reports whether verify has found it.
func (m mutant) found(f finding) bool { return f.Violations[m.finds] > 0 }

// overlay writes the files that are different into a folder, and returns the path
// of the one by which the go command knows of them. root is the folder of the
// repository.
func (m mutant) overlay(root, folder string) (string, error) {
	texts := make(map[string]string)
	for _, e := range m.edits {
		text, ok := texts[e.file]
		if !ok {
			file, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				return "", fmt.Errorf("mutant %s: %w", m.name, err)
			}
			text = string(file)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return "", fmt.Errorf("mutant %s: this has to stand once in %s, and is there %d times:\n%s", m.name, e.file, n, e.old)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	replace := make(map[string]string)
	for file, text := range texts {
		copied := filepath.Join(folder, m.name+"-"+filepath.Base(file))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, m.name+".json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// packages are those with a file that is different.
func (m mutant) packages() (all []string) {
	for _, e := range m.edits {
		folder := strings.TrimSuffix(filepath.ToSlash(filepath.Dir(e.file)), "/lua") // which are embedded
		if name := path.Join("github.com/holdfast-go/holdfast", folder); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
