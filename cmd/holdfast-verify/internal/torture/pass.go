package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/prover"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
)

// patience is how long verify may take besides the time in which faults are done.
const patience = 10 * time.Minute

// A pass is a run through every trial.
type pass struct {
	length   time.Duration // of a trial of a single fault
	seed     uint64
	parallel int
	stores   string // the flags that choose a part, "" for all
	faults   string
	folder   string // for the reports, "" for none
	out      io.Writer
	program  prover.Program
	build    string // identifies the build
}

// A result is the result of a trial.
type result struct {
	trial   trial
	Command string         `json:"command"`
	Build   string         `json:"build"`  // of the program
	Again   bool           `json:"again"`  // the trial was repeated, with nothing beside it
	Report  *verify.Report `json:"report"` // nil if the trial could not be done
	err     error          // why the trial could not be done, or the violation found
}

// part reports whether the pass has only a part of the trials.
func (p *pass) part() bool { return p.stores != "" || p.faults != "" }

// file returns the name of the file for the tables.
func (p *pass) file() string {
	if p.part() {
		return partFile
	}
	return tablesFile
}

// command returns the command of the whole pass.
func (p *pass) command() string {
	words := []string{"-for", p.length.String(), "-parallel", strconv.Itoa(p.parallel), "-seed", strconv.FormatUint(p.seed, 10)}
	if p.stores != "" {
		words = append(words, "-store", p.stores)
	}
	if p.faults != "" {
		words = append(words, "-nemesis", p.faults)
	}
	return fmt.Sprintf("make torture TORTURE=%q", strings.Join(words, " "))
}

// do builds the program, does every trial with the program, and returns the results.
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
	return p.all(ctx, trials)
}

// all does every trial, and returns the results. A trial that has proved nothing is
// repeated in the end, once and alone: a busy machine may have left the trial too little
// time. The error reports what the trials have found wrong, and that none has proved
// anything; a single such trial is reported in the output only. When ctx ends, running trials
// are cancelled, and all returns the cause of ctx.
func (p *pass) all(ctx context.Context, trials []trial) ([]result, error) {
	results := make([]result, len(trials))
	var all, unproved []*result
	for i, t := range trials {
		results[i].trial = t
		all = append(all, &results[i])
	}
	p.each(ctx, all, p.parallel)
	for _, r := range all {
		if r.unproved() {
			r.Again = true
			unproved = append(unproved, r)
		}
	}
	if len(unproved) > 0 {
		fmt.Fprintf(p.out, "%d runs have proved nothing, and are done again one at a time\n", len(unproved))
		p.each(ctx, unproved, 1)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var wrong, idle []error
	for _, r := range results {
		if errors.Is(r.err, verify.ErrUnproved) {
			idle = append(idle, r.err)
		} else {
			wrong = append(wrong, r.err)
		}
	}
	if len(idle) == len(results) {
		return results, errors.Join(idle...)
	}
	for _, err := range idle {
		fmt.Fprintln(p.out, "not proved:", err)
	}
	return results, errors.Join(wrong...)
}

// each does some trials, with the given number at once, until ctx ends.
func (p *pass) each(ctx context.Context, some []*result, parallel int) {
	next := make(chan *result)
	var done sync.WaitGroup
	var ended int
	var mu sync.Mutex // of ended and out
	for range parallel {
		done.Go(func() {
			for r := range next {
				r.err = p.try(ctx, r)
				if ctx.Err() != nil {
					continue // the trial was cancelled
				}
				mu.Lock()
				ended++
				fmt.Fprintf(p.out, "%3d/%d %s\n", ended, len(some), r)
				if r.Report == nil {
					fmt.Fprintln(p.out, r.err)
				}
				mu.Unlock()
			}
		})
	}
	for _, r := range some {
		if ctx.Err() == nil {
			next <- r
		}
	}
	close(next)
	done.Wait()
}

// compile builds the program. When ctx ends, compile returns the cause of ctx.
func (p *pass) compile(ctx context.Context, path string) (err error) {
	if p.program, err = prover.Build(ctx, path); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		p.build, err = p.program.Sum()
	}
	return err
}

// try does a trial, unless its report exists already.
func (p *pass) try(ctx context.Context, r *result) error {
	flags := r.trial.flags(p.length, p.seed)
	r.Command, r.Build = "holdfast verify "+strings.Join(flags, " "), p.build
	if p.recall(r) {
		return r.found()
	}
	ctx, cancel := context.WithTimeout(ctx, verify.Most(r.trial.lasts(p.length))+patience)
	defer cancel()
	var err error
	if r.Report, err = p.program.Verify(ctx, flags...); err != nil {
		return fmt.Errorf("%s: %w", r.Command, err)
	}
	if err := p.keep(*r); err != nil {
		return fmt.Errorf("%s: %s, and the report cannot be kept: %w", r.Command, r.verdict(), err)
	}
	return r.found()
}

// found returns what a report has found wrong.
func (r result) found() error {
	err := r.Report.Err()
	if lacks := r.lacks(); err == nil && lacks != "" {
		err = fmt.Errorf("%w: %s", verify.ErrUnproved, lacks)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.Command, err)
	}
	return nil
}

// lacks returns the reason why a report proves nothing, "" if the report proves something.
// A trial of longLived proves something only if some locks had to be renewed.
func (r result) lacks() string {
	if why := r.Report.Unchecked[check.Kept]; r.Report.Invalid == "" && r.trial.faults == longLived && why != "" {
		return fmt.Sprintf("%s was not checked: %s", check.Kept, why)
	}
	return r.Report.Invalid
}

// unproved reports whether a run was done, has found no violation, and has proved nothing
// either.
func (r result) unproved() bool {
	return r.Report != nil && errors.Is(r.found(), verify.ErrUnproved)
}

// path returns where a report is kept.
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

// recall reads the report of the same command and build from the folder, if the report
// exists and has proved something.
func (p *pass) recall(r *result) bool {
	if p.folder == "" {
		return false
	}
	text, err := os.ReadFile(p.path(r.trial))
	if err != nil {
		return false
	}
	earlier := result{trial: r.trial}
	if json.Unmarshal(text, &earlier) != nil || earlier.Command != r.Command || earlier.Build != r.Build || earlier.Report == nil || earlier.unproved() {
		return false
	}
	r.Report, r.Again = earlier.Report, earlier.Again
	return true
}

// String returns the line of a finished trial.
func (r result) String() string {
	name := fmt.Sprintf("%-17s %-12s", r.trial.store, r.trial.faults)
	if r.Report == nil {
		return name + " not done"
	}
	return fmt.Sprintf("%s %7d operations %7d grants %5d losses  gap %-7v seed %d  %s",
		name, r.Report.Operations, r.Report.Grants, r.Report.Losses, r.gap(), r.Report.Seed, r.verdict())
}

// gap returns the longest time in which nobody could acquire a key.
func (r result) gap() time.Duration {
	return time.Duration(r.Report.Longest.Seconds * float64(time.Second)).Round(10 * time.Millisecond)
}
