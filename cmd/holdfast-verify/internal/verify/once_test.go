//go:build unix

package verify

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// An effect has one owner at a time, whose lock is put to the proof as others are.
func TestOnlyEffects(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Seed, c.Length, c.Fewest = 1, 4*time.Second, 20 // with fewer locks, no effect may have been wanted twice
	c.TTL, c.Workers, c.Clients, c.Keys = time.Second, 2, 2, 1
	c.Command = []string{os.Args[0], "work"}
	c.Stderr = os.Stderr
	c.Kinds, c.Nemeses = []plan.Kind{plan.Once}, []plan.Nemesis{plan.Kill}
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	skipUnproved(t, c, report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if report.Effects == 0 || report.Grants < report.Effects || report.Operations <= report.Grants {
		t.Errorf("%d effects under %d locks by %d operations", report.Effects, report.Grants, report.Operations)
	}
}

// Every second worker is of another release.
func TestBeside(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	other, started := filepath.Join(folder, "holdfast-verify"), filepath.Join(folder, "started")
	script := fmt.Sprintf("#!/bin/sh\necho $1 >> %s\nexec %s \"$@\"\n", started, os.Args[0])
	if err := os.WriteFile(other, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := Default()
	c.Seed, c.Length, c.TTL, c.Fewest, c.Beside = 1, time.Second, time.Second, 1, other
	c.Workers, c.Clients, c.Keys = 4, 1, 1
	c.Kinds, c.Nemeses = []plan.Kind{plan.Exclusive}, []plan.Nemesis{}
	prove(t, c)
	if text, err := os.ReadFile(started); err != nil || string(text) != "work\nwork\n" {
		t.Errorf("the other program was started with %q, %v; want two of four workers", text, err)
	}
}

// A run that never sees enough does its faults again and again, and then proves nothing,
// which is no breach.
func TestUnprovedRunIsExtended(t *testing.T) {
	t.Parallel()
	c := Default()
	c.Seed, c.Length, c.Fewest = 1, time.Second, math.MaxInt
	c.TTL, c.Workers, c.Clients, c.Keys = time.Second, 2, 1, 1
	c.Command = []string{os.Args[0], "work"}
	c.Stderr = os.Stderr
	c.Kinds, c.Nemeses = []plan.Kind{plan.Exclusive}, []plan.Nemesis{plan.Kill}
	c.Out = kept(t)
	report, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	switch err := report.Err(); {
	case errors.Is(err, ErrUngranted):
		unproved.Logf(t, "%v", err)
	case !errors.Is(err, ErrUnproved):
		t.Errorf("got %v", err)
	}
	if whole := Most(c.Length).Seconds(); report.Seconds != whole || report.More == "" {
		t.Errorf("it has ended after %vs of %v, extended because %q", report.Seconds, whole, report.More)
	}
}
