package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/prover"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify"
)

// patience is how long verify may take besides the time in which it does harm.
const patience = 10 * time.Minute

// A pass is a run through all trials.
type pass struct {
	length   time.Duration // of a trial of one fault
	seed     uint64
	parallel int
	folder   string // for the reports, "" for none
	out      io.Writer
	program  prover.Program
	build    string // tells it from every other build
}

// A result is what has come of a trial.
type result struct {
	trial   trial
	Command string         `json:"command"`
	Build   string         `json:"build"`  // of the program
	Report  *verify.Report `json:"report"` // nil if it could not be done
}

// do does all trials, and returns what has come of each. It is an error if one has
// found something wrong. When ctx ends, the trials that are under way are given up, and
// its cause is returned.
func (p *pass) do(ctx context.Context, trials []trial) ([]result, error) {
	scratch, err := os.MkdirTemp("", "holdfast-torture-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	if p.folder != "" {
		if err := os.MkdirAll(p.folder, 0o755); err != nil {
			return nil, err
		}
	}
	fmt.Fprintf(p.out, "%d runs, %d at once, of %v for one fault, with the seed %d\n", len(trials), p.parallel, p.length, p.seed)
	if err := p.compile(ctx, filepath.Join(scratch, "holdfast")); err != nil {
		return nil, err
	}
	results, errs := make([]result, len(trials)), make([]error, len(trials))
	next := make(chan int)
	var done sync.WaitGroup
	var ended int
	var mu sync.Mutex // of ended and out
	for range p.parallel {
		done.Go(func() {
			for i := range next {
				results[i], errs[i] = p.try(ctx, trials[i])
				if ctx.Err() != nil {
					continue // it was given up
				}
				mu.Lock()
				ended++
				fmt.Fprintf(p.out, "%3d/%d %s\n", ended, len(trials), results[i])
				if results[i].Report == nil {
					fmt.Fprintln(p.out, errs[i])
				}
				mu.Unlock()
			}
		})
	}
	for i := range trials {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	done.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return results, errors.Join(errs...)
}

// compile builds the program. When ctx ends, it returns its cause.
func (p *pass) compile(ctx context.Context, path string) (err error) {
	if p.program, err = prover.Build(ctx, path); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		p.build, err = p.program.Sum()
	}
	return err
}

// try does one trial, unless its report is there already.
func (p *pass) try(ctx context.Context, t trial) (result, error) {
	flags := t.flags(p.length, p.seed)
	r := result{trial: t, Command: "holdfast verify " + strings.Join(flags, " "), Build: p.build}
	if p.recall(&r) {
		return r, r.err()
	}
	ctx, cancel := context.WithTimeout(ctx, t.lasts(p.length)+patience)
	defer cancel()
	var err error
	if r.Report, err = p.program.Verify(ctx, flags...); err != nil {
		return r, fmt.Errorf("%s: %w", r.Command, err)
	}
	return r, errors.Join(r.err(), p.keep(r))
}

// err says what a report has found wrong.
func (r result) err() error {
	if err := r.Report.Err(); err != nil {
		return fmt.Errorf("%s: %w", r.Command, err)
	}
	return nil
}

// path is where a report is kept.
func (p *pass) path(t trial) string {
	return filepath.Join(p.folder, strings.ReplaceAll(t.store, ":", "-")+"-"+t.faults+".json")
}

// keep writes a report into the folder.
func (p *pass) keep(r result) error {
	if p.folder == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(p.path(r.trial), append(text, '\n'), 0o644)
}

// recall reads the report of the same command and build from the folder, if it is
// there.
func (p *pass) recall(r *result) bool {
	if p.folder == "" {
		return false
	}
	text, err := os.ReadFile(p.path(r.trial))
	if err != nil {
		return false
	}
	var earlier result
	if json.Unmarshal(text, &earlier) != nil || earlier.Command != r.Command || earlier.Build != r.Build || earlier.Report == nil {
		return false
	}
	r.Report = earlier.Report
	return true
}

// String is the line of a trial that has ended.
func (r result) String() string {
	name := fmt.Sprintf("%-17s %-12s", r.trial.store, r.trial.faults)
	if r.Report == nil {
		return name + " not done"
	}
	return fmt.Sprintf("%s %7d operations %7d grants %5d losses  gap %-7v seed %d  %s",
		name, r.Report.Operations, r.Report.Grants, r.Report.Losses, r.gap(), r.Report.Seed, r.verdict())
}

// gap is the longest time in which nobody could have a key.
func (r result) gap() time.Duration {
	return time.Duration(r.Report.Longest.Seconds * float64(time.Second)).Round(10 * time.Millisecond)
}
