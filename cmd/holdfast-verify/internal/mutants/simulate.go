package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// A simulator is the path of the compiled tests of internal/sim.
type simulator string

// A sighting is the simulator's finding for a mutant.
type sighting struct {
	check string        // that was violated first, "" without a violation
	seeds uint64        // that were run, from 0 on
	took  time.Duration // of a processor
}

// String returns the cell of the table.
func (s sighting) String() string {
	if s.check == "" {
		return "–"
	}
	return fmt.Sprintf("%s, %d worlds, %.1f s", s.check, s.seeds, s.took.Seconds())
}

// mostSeeds is how many worlds the simulator may need to find a mutant.
const mostSeeds = 2000

// simulator compiles the tests of internal/sim, with more flags of "go test".
func (l *lab) simulator(ctx context.Context, name string, flags ...string) (simulator, error) {
	program := filepath.Join(l.folder, name+".sim")
	args := append([]string{"test", "-c", "-o", program}, flags...)
	build := exec.CommandContext(ctx, "go", append(args, "github.com/holdfast-go/holdfast/internal/sim")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, out)
	}
	return simulator(program), nil
}

// simulate fails unless the simulator finds a mutant, by a check that shows the mutant, and
// finds nothing in the same seeds without the mutant. A world that ends with a different check does
// not count: the mutant may have done more than one harm there.
func (l *lab) simulate(ctx context.Context, sound simulator, m mutant) (s sighting, err error) {
	list, err := m.overlay(l.root, l.folder)
	if err != nil {
		return s, err
	}
	program, err := l.simulator(ctx, m.name, "-overlay="+list)
	if err != nil {
		return s, err
	}
	defer os.Remove(string(program))
	for s.seeds < mostSeeds && m.convicts(s) != nil {
		if s, err = program.look(ctx, m.sim.test, s, mostSeeds); err != nil {
			return s, err
		}
	}
	if err := m.convicts(s); err != nil {
		return s, err
	}
	without, err := sound.look(ctx, m.sim.test, sighting{}, s.seeds)
	return s, errors.Join(err, m.acquits(without))
}

// convicts fails unless the simulator has seen the mutant itself.
func (m mutant) convicts(s sighting) error {
	if !slices.Contains(m.sim.checks, s.check) {
		return fmt.Errorf("mutant %s %w: in %d seeds of %s, none of %q is broken first in any world", m.name, errSurvived, s.seeds, m.sim.test, m.sim.checks)
	}
	return nil
}

// acquits fails if the simulator has seen a violation without the mutant.
func (m mutant) acquits(s sighting) error {
	if s.check != "" {
		return fmt.Errorf("%s finds that %q is broken in seed %d, and there is no mutant", m.sim.test, s.check, s.seeds-1)
	}
	return nil
}

var accused = regexp.MustCompile(`seed (\d+): ([a-z]+)`)

// look runs a test with the seeds after a sighting, below last, until there is a violation.
func (s simulator) look(ctx context.Context, test string, after sighting, last uint64) (sighting, error) {
	run := exec.CommandContext(ctx, string(s), "-test.run=^"+test+"$", "-test.timeout=10m",
		fmt.Sprint("-first=", after.seeds), fmt.Sprint("-seeds=", last-after.seeds))
	out, err := run.CombinedOutput()
	var failed *exec.ExitError
	switch said := accused.FindSubmatch(out); {
	case bytes.Contains(out, []byte("no tests to run")):
		return sighting{}, fmt.Errorf("there is no %s in internal/sim", test)
	case err == nil:
		return sighting{seeds: last}, nil
	case !errors.As(err, &failed) || ctx.Err() != nil || said == nil:
		return sighting{}, fmt.Errorf("%s: %w\n%s", run, err, out)
	default:
		seed, err := strconv.ParseUint(string(said[1]), 10, 64)
		return sighting{string(said[2]), seed + 1, after.took + run.ProcessState.UserTime() + run.ProcessState.SystemTime()}, err
	}
}
