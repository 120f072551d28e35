package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/prover"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// A lab is where mutants are built and tried.
type lab struct {
	root     string        // folder of the repository
	folder   string        // for all that comes of it
	parallel int           // how many are tried at once
	limit    time.Duration // how long verify may take
}

// repository returns the folder of this repository.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/holdfast-go/holdfast").Output()
	return strings.TrimSpace(string(out)), err
}

// A verdict is what has come of a mutant.
type verdict struct {
	finding
	err error // it has survived, or verify has accused Holdfast as it is
}

// tryAll tries mutants, and Holdfast as it is in the same ways, and writes a table
// of them.
func (l *lab) tryAll(ctx context.Context, all []mutant, out io.Writer) error {
	sound, err := prover.Build(ctx, filepath.Join(l.folder, "sound"))
	if err != nil {
		return err
	}
	verdicts := make([]chan verdict, len(all))
	for i := range all {
		verdicts[i] = make(chan verdict, 1)
	}
	go func() {
		free := make(chan struct{}, l.parallel)
		for i, m := range all {
			free <- struct{}{}
			go func() {
				defer func() { <-free }()
				f, err := l.convict(ctx, m)
				verdicts[i] <- verdict{f, errors.Join(err, l.acquit(ctx, sound, m))}
			}()
		}
	}()
	fmt.Fprint(out, tableHead)
	var builds []string
	var failed []error
	for i, m := range all {
		v := <-verdicts[i]
		if ctx.Err() == nil { // else it has come to nothing
			failed = append(failed, v.err)
			fmt.Fprint(out, m.row(v.finding))
		}
		if v.Build != "" && !slices.Contains(builds, v.Build) {
			builds = append(builds, v.Build)
		}
	}
	if len(builds) > 0 {
		fmt.Fprint(out, tableFoot(builds))
	}
	return errors.Join(append(failed, ctx.Err())...)
}

// convict fails if verify does not find a mutant.
func (l *lab) convict(ctx context.Context, m mutant) (finding, error) {
	f, err := l.try(ctx, m)
	if err == nil && !m.found(f) {
		err = fmt.Errorf("mutant %s has survived: verify %s does not find that %q is broken", m.name, m.run, m.finds)
	}
	return f, err
}

// try lets verify look for a mutant.
func (l *lab) try(ctx context.Context, m mutant) (finding, error) {
	overlay, err := m.overlay(l.root, l.folder)
	if err != nil {
		return finding{}, err
	}
	program, err := prover.Build(ctx, filepath.Join(l.folder, m.name), "-overlay="+overlay)
	if err != nil {
		return finding{}, err
	}
	defer os.Remove(string(program))
	return l.seek(ctx, program, m.name, m.run, m.found)
}

// acquit fails if the run that finds a mutant finds something without it.
func (l *lab) acquit(ctx context.Context, sound prover.Program, m mutant) error {
	f, err := l.seek(ctx, sound, "no-"+m.name, m.run, func(f finding) bool { return f.Invalid == "" || len(f.broken()) > 0 })
	switch broken := f.broken(); {
	case err != nil:
		return err
	case len(broken) > 0:
		return fmt.Errorf("verify %s finds that %s is broken, and there is no mutant", m.run, plan.List(broken))
	case f.Invalid != "":
		return fmt.Errorf("verify %s has proved nothing: %s", m.run, f.Invalid)
	}
	return nil
}

// A finding is what verify has told.
type finding struct {
	verify.Report
	took time.Duration
}

// broken lists the promises that were.
func (f finding) broken() (all []check.Promise) {
	for _, p := range check.Promises() {
		if f.Violations[p] > 0 {
			all = append(all, p)
		}
	}
	return all
}

// seek runs the verify of a program until it finds enough, as long as there is time
// for another run: what comes of one depends on the machine, too.
func (l *lab) seek(ctx context.Context, program prover.Program, name, flags string, enough func(finding) bool) (f finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	began := time.Now()
	for n := 1; ; n++ {
		again := time.Now()
		history := filepath.Join(l.folder, fmt.Sprintf("%s.%d.history", name, n))
		r, err := program.Verify(ctx, append(strings.Fields(flags), "--out", history)...)
		f.took = time.Since(began)
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return f, fmt.Errorf("it has not ended within %v: %w", l.limit, err)
		case err != nil:
			return f, err
		}
		f.Report = *r
		if enough(f) || f.took+time.Since(again) > l.limit {
			return f, nil
		}
	}
}
