package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// limit is how long a run may take to find a mutant.
const limit = 2 * time.Minute

// A lab is where mutants are built and tried.
type lab struct {
	root   string // folder of the repository
	folder string // for all that comes of it
}

// repository returns the folder of this repository.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/holdfast-go/holdfast").Output()
	return strings.TrimSpace(string(out)), err
}

// tryAll tries mutants, writes a table of them, and then tries Holdfast as it is
// in the same ways.
func (l *lab) tryAll(ctx context.Context, pick *regexp.Regexp, out io.Writer) error {
	var failed []error
	var runs []string
	fmt.Fprint(out, "| mutant | what is wrong with it | `holdfast verify` | found by | after |\n|---|---|---|---|--:|\n")
	for _, m := range mutants() {
		if !pick.MatchString(m.name) {
			continue
		}
		f, err := l.try(ctx, m)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %s | `%s` | %s | %.0f s |\n", m.name, m.wrong, m.run, strings.Join(f.broken(), ", "), f.took.Seconds())
		if f.Violations[m.finds] == 0 {
			failed = append(failed, fmt.Errorf("mutant %s has survived: %s has found nothing", m.name, m.finds))
		}
		runs = append(runs, m.run)
	}
	sound, err := l.build(ctx, "sound")
	if err != nil {
		return err
	}
	for n, run := range runs {
		f, err := l.verify(ctx, sound, fmt.Sprintf("sound%d", n), run)
		if err != nil {
			return err
		}
		for _, check := range f.broken() {
			failed = append(failed, fmt.Errorf("%s: %s is broken, and there is no mutant", run, check))
		}
		if f.Invalid != "" {
			failed = append(failed, fmt.Errorf("%s: nothing is proved: %s", run, f.Invalid))
		}
	}
	if len(failed) == 0 {
		fmt.Fprintf(out, "\nNone of these runs has found anything in Holdfast as it is.\n")
	}
	return errors.Join(failed...)
}

// try lets verify look for a mutant.
func (l *lab) try(ctx context.Context, m mutant) (finding, error) {
	overlay, err := m.overlay(l.root, l.folder)
	if err != nil {
		return finding{}, err
	}
	program, err := l.build(ctx, m.name, "-overlay="+overlay)
	if err != nil {
		return finding{}, err
	}
	return l.verify(ctx, program, m.name, m.run)
}

// build builds the command, and returns its path.
func (l *lab) build(ctx context.Context, name string, flags ...string) (string, error) {
	path := filepath.Join(l.folder, name)
	args := append([]string{"build", "-o", path}, flags...)
	return path, l.do(ctx, append(args, "./ext/cmd/holdfast")...)
}

// do runs the go command in the repository.
func (l *lab) do(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// A finding is what verify has told.
type finding struct {
	Violations map[string]int `json:"violations"`
	Invalid    string         `json:"invalid"`
	took       time.Duration
}

// checks are those of verify, in its order.
var checks = []string{"exclusion", "fence", "tokens", "told", "kept", "progress", "once", "tidy"}

// broken lists the checks that have failed.
func (f finding) broken() (all []string) {
	for _, check := range checks {
		if f.Violations[check] > 0 {
			all = append(all, check)
		}
	}
	return all
}

// verify runs the verify of a program. It is an error if that cannot be done, and
// if it has an end that is not that of its findings.
func (l *lab) verify(ctx context.Context, program, name, flags string) (f finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := append([]string{"verify", "--json", "--out", filepath.Join(l.folder, name+".history")}, strings.Fields(flags)...)
	cmd := exec.CommandContext(ctx, program, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	began := time.Now()
	failed := cmd.Run()
	f.took = time.Since(began)
	if err := json.Unmarshal(out.Bytes(), &f); err != nil {
		return f, fmt.Errorf("%s: %w\n%s", cmd, errors.Join(ctx.Err(), failed, err), &complaints)
	}
	if sound := len(f.broken()) == 0; failed == nil && !sound {
		return f, fmt.Errorf("%s has found %v, and not failed", cmd, f.broken())
	}
	return f, nil
}
