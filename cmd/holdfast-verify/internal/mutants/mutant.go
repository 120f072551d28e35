package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/internal/overlay"
)

// A mutant is Holdfast with a single bug.
type mutant struct {
	name  string
	wrong string // for people
	edits []overlay.Edit
	run   string        // flags of the verify that finds the mutant; "" if verify has no such fault
	finds check.Promise // the check that finds the mutant, by its promise

	// How the simulator finds the mutant, or why the simulator cannot.
	sim    search
	unseen string
}

// A search is a test of internal/sim, and the checks that show the mutant. The first
// violation ends a world. A violation of a check that is not listed does not count.
type search struct {
	test   string
	checks []string
}

// twoHolders are the checks that show two holders of a key. The actions of the holders
// decide which check is the first. If one of them has left with a MinHold that is not over,
// it is "hold".
var twoHolders = []string{"exclusion", "tokens", "told", "hold"}

// lostClaims are the checks that show that a claim of a different process was ended: its
// holder loses the lock, its waiter the place in the queue, and two may hold the key.
var lostClaims = append([]string{"kept", "order", "progress"}, twoHolders...)

// mutants returns every mutant.
func mutants() []mutant {
	return slices.Concat(engine, above, redis, redlocks, sql, sessions, etcd, cas, plain, fence)
}

// found reports whether verify has found the mutant.
func (m mutant) found(f finding) bool { return f.Violations[m.finds] > 0 }

// overlay writes the files for the go command to compile the mutant into a subfolder of
// folder, and returns the path of their list. root is the folder of the repository.
func (m mutant) overlay(root, folder string) (list string, err error) {
	folder = filepath.Join(folder, m.name+".overlay")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	if list, err = overlay.Write(folder, overlay.In(root, m.edits)); err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.name, err)
	}
	return list, nil
}

// packages returns the packages with a changed file.
func (m mutant) packages() (all []string) {
	for _, e := range m.edits {
		folder := strings.TrimSuffix(filepath.ToSlash(filepath.Dir(e.File)), "/lua") // scripts are embedded
		if name := path.Join("github.com/holdfast-go/holdfast", folder); !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
