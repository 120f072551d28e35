package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/prover"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/publish"
)

// A lab is where mutants are built and tried.
type lab struct {
	root     string        // folder of the repository
	folder   string        // for the results
	parallel int           // how many mutants are tried at once
	limit    time.Duration // how long verify may take
	verify   bool          // let verify also look for mutants that the simulator finds
}

// repository returns the folder of this repository.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/holdfast-go/holdfast").Output()
	return strings.TrimSpace(string(out)), err
}

// A verdict is the result for a mutant.
type verdict struct {
	finding
	seen   sighting
	commit string // where somebody has looked
	err    error  // the mutant has survived, or verify has accused the unchanged Holdfast
}

// A sound is the unchanged Holdfast.
type sound struct {
	verify prover.Program
	sim    simulator
}

// sound builds the unchanged Holdfast, once for every mutant.
func (l *lab) sound(ctx context.Context) (s sound, err error) {
	const name = "sound"
	if s.verify, err = prover.Build(ctx, filepath.Join(l.folder, name)); err == nil {
		s.sim, err = l.simulator(ctx, name)
	}
	return s, err
}

// tryAll tries mutants, and the unchanged Holdfast in the same ways, and writes a table of
// the mutants. The result is the lines of the table.
func (l *lab) tryAll(ctx context.Context, all []mutant, out io.Writer) (rows, error) {
	s, err := l.sound(ctx)
	if err != nil {
		return nil, err
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
				verdicts[i] <- l.judge(ctx, s, m)
			}()
		}
	}()
	return collect(ctx, out, all, verdicts)
}

// errSurvived says that nobody has found a mutant, though somebody has looked.
var errSurvived = errors.New("has survived")

// collect writes a table of the verdicts as they come, and returns the lines of the mutants that
// were found or have survived. If ctx ends, collect waits for the remaining tries to end.
func collect(ctx context.Context, out io.Writer, all []mutant, verdicts []chan verdict) (rows, error) {
	fmt.Fprint(out, tableHead)
	tried := rows{}
	var failed []error
	for i, m := range all {
		v := <-verdicts[i]
		if ctx.Err() != nil {
			continue // the try was cancelled
		}
		row := m.row(v)
		fmt.Fprint(out, row)
		if v.err == nil || errors.Is(v.err, errSurvived) {
			tried[m.name] = row
		}
		failed = append(failed, v.err)
	}
	return tried, errors.Join(append(failed, ctx.Err())...)
}

// judge lets the simulator look for a mutant, which takes seconds. If the simulator cannot
// find the mutant, verify looks for the mutant.
func (l *lab) judge(ctx context.Context, s sound, m mutant) (v verdict) {
	v.commit = publish.Commit(ctx)
	if m.unseen == "" {
		if v.seen, v.err = l.simulate(ctx, s.sim, m); !l.verify || m.run == "" {
			return v
		}
	}
	f, err := l.convict(ctx, m)
	v.finding, v.err = f, errors.Join(v.err, err, l.acquit(ctx, s.verify, m))
	return v
}

// convict fails if verify does not find a mutant.
func (l *lab) convict(ctx context.Context, m mutant) (finding, error) {
	f, err := l.try(ctx, m)
	if err == nil && !m.found(f) {
		err = fmt.Errorf("mutant %s %w: verify %s does not find that %q is broken, it finds %q", m.name, errSurvived, m.run, m.finds, f.broken())
		if reason := f.Unchecked[m.finds]; reason != "" {
			err = fmt.Errorf("%w, and did not judge that: %s", err, reason)
		}
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
	return l.seek(ctx, l.verifier(program, m.name, m.run), m.found)
}

// acquit fails if the run that finds a mutant finds a violation without the mutant.
func (l *lab) acquit(ctx context.Context, sound prover.Program, m mutant) error {
	f, err := l.seek(ctx, l.verifier(sound, "no-"+m.name, m.run), func(f finding) bool { return f.Invalid == "" || len(f.broken()) > 0 })
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

// A finding is the report of verify.
type finding struct {
	verify.Report
	took time.Duration
}

// broken lists the broken promises.
func (f finding) broken() (all []check.Promise) {
	for _, p := range check.Promises() {
		if f.Violations[p] > 0 {
			all = append(all, p)
		}
	}
	return all
}

// A verifier runs verify once a call, with a separate history for each call.
type verifier func(ctx context.Context) (*verify.Report, error)

// verifier runs a program with the same flags each time.
func (l *lab) verifier(program prover.Program, name, flags string) verifier {
	n := 0
	return func(ctx context.Context) (*verify.Report, error) {
		n++
		history := filepath.Join(l.folder, fmt.Sprintf("%s.%d.history", name, n))
		return program.Verify(ctx, append(strings.Fields(flags), "--out", history)...)
	}
}

// seek runs verify until enough is found, as long as there is time for a further run: the
// result of a run depends on the machine, too.
func (l *lab) seek(ctx context.Context, run verifier, enough func(finding) bool) (f finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.limit)
	defer cancel()
	began := time.Now()
	for {
		again := time.Now()
		r, err := run(ctx)
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
