package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// The test binary is also the worker.
func TestMain(m *testing.M) {
	worked, err := worker.Serve()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if worked {
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var tiny = scale{
	warm: 8, rounds: 1, each: 20 * time.Millisecond, longest: 40 * time.Millisecond,
	handOffs: 2, wait: 5 * time.Millisecond, late: 20 * time.Millisecond,
	ttl: 10 * time.Second, idle: 10 * time.Millisecond, held: 20, heldFor: 20 * time.Millisecond,
}

// TestEverySide lets every side of every store do everything for a moment.
func TestEverySide(t *testing.T) {
	for _, st := range stores.All() {
		if st.Name == "zookeeper-ensemble" {
			continue // the sides of zookeeper again, on three servers that take long to start
		}
		t.Run(st.Name, func(t *testing.T) {
			if testing.Short() && st.Name != "memory" {
				t.Skip("the same on one more store: make prove")
			}
			t.Parallel()
			f, err := open(t, st, tiny, 2, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := f.close(); err != nil {
					t.Error(err)
				}
			}()
			p := everything(t)
			for _, b := range p.benches(st) {
				if b.waiting > 10 {
					continue // the same with more clients
				}
				b.processes, b.goroutines, b.waiting = min(b.processes, 2), min(b.goroutines, 8), min(b.waiting, 3)
				results, err := f.run(t.Context(), b)
				if err != nil {
					t.Fatalf("%s: %v", b.name, err)
				}
				for _, r := range results {
					check(t, b, r)
				}
			}
			if p.holds(st) {
				all, err := f.hold(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, h := range all {
					if h.lost > 0 {
						t.Errorf("%s lost %d of %d locks that it held", h.side.Name, h.lost, tiny.held)
					}
				}
			}
		})
	}
}

func everything(t *testing.T) plan {
	t.Helper()
	p, err := newPlan("", tiny, 1)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// check sees whether a side has done anything, and that in order if it is ours. How
// soon is not judged, nor what it has cost: over a few milliseconds that is mostly what an
// idle connection sends. stores.TestCosts counts.
func check(t *testing.T, b bench, r result) {
	t.Helper()
	if len(r.tally.Times) == 0 || r.tally.Had == 0 || len(r.rounds) != tiny.rounds {
		t.Errorf("%s: %s measured %d times of %d locks in %d rounds",
			b.name, r.side.Name, len(r.tally.Times), r.tally.Had, len(r.rounds))
	}
	if r.side.Kind == stores.Ours && r.tally.Lost+r.tally.Twice > 0 {
		t.Errorf("%s: %s lost %d locks and granted %d twice", b.name, r.side.Name, r.tally.Lost, r.tally.Twice)
	}
}

// TestWholeRun prints the tables of a small store, and the picture.
func TestWholeRun(t *testing.T) {
	t.Parallel()
	p, err := newPlan("^memory/", tiny, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.runAll(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	whole, _ := pictures(out.String())
	picture := string(whole.Draw())
	for _, st := range stores.All()[:1] {
		for _, s := range st.Sides {
			if n := strings.Count(out.String(), "\n| "+s.Name+" |"); n < 3 {
				t.Errorf("%d tables have a row of %s, want 3:\n%s", n, s.Name, out.String())
			}
			if strings.Contains(picture, ">"+s.Name+"<") == s.Empty {
				t.Errorf("%s is in the picture: %t", s.Name, s.Empty)
			}
		}
	}
}

// TestHeldAlone runs the one bench that starts processes of its own.
func TestHeldAlone(t *testing.T) {
	t.Parallel()
	p, err := newPlan("^memory/held", tiny, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.runAll(t.Context(), &out); err != nil || !strings.Contains(out.String(), "Held: 20 locks") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestSave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	args := []string{"-short", "-run", "^memory/alone", "-save", dir}
	if err := execute(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	before := out.String()
	if err := execute(t.Context(), args, &out); err == nil || !strings.Contains(err.Error(), "another folder") || out.String() != before {
		t.Errorf("a part in place of what was saved: %v", err)
	}
	for name, want := range map[string]string{"bench-tables.md": out.String(), "bench.svg": "</svg>\n"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.HasSuffix(string(text), want) {
			t.Errorf("%s ends with %.80q, %v; want %.80q", name, text, err, want)
		}
	}
}

// TestPicture runs without -save, which leaves the picture where it is in nobody's way.
func TestPicture(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir) // of most systems
	t.Setenv("TMP", dir)    // of Windows
	var out bytes.Buffer
	if err := execute(t.Context(), []string{"-short", "-run", "^memory/alone"}, &out); err != nil {
		t.Fatal(err)
	}
	_, path, found := strings.Cut(out.String(), "Picture: ")
	path = strings.TrimSpace(path)
	if text, err := os.ReadFile(path); !found || filepath.Dir(path) != dir || err != nil || !strings.HasSuffix(string(text), "</svg>\n") {
		t.Errorf("the picture %q ends with %.80q, %v:\n%s", path, text, err, out.String())
	}
	out.Reset()
	if err := execute(t.Context(), []string{"-short", "-run", "^memory/distinct"}, &out); err != nil || strings.Contains(out.String(), "Picture") {
		t.Errorf("a picture of what none shows: %v\n%s", err, out.String())
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p, err := newPlan("^memory/", tiny, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.runAll(ctx, &bytes.Buffer{}); err == nil {
		t.Error("an interrupted run ended without an error")
	}
}

// TestMissing is about stores whose server is not installed.
func TestMissing(t *testing.T) {
	t.Setenv("HOLDFAST_TEST_ALL", "")
	t.Setenv("HOLDFAST_ETCD", "")
	t.Setenv("PATH", "")
	p, err := newPlan("^(memory|etcd)/alone", tiny, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.runAll(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### Memory", "Not measured: etcd: not installed: no etcd in PATH"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestArguments(t *testing.T) {
	for _, test := range []struct {
		args, want string
	}{
		{"-run (", "-run: error parsing regexp"},
		{"-run nothing/at-all", "-list shows what there is"},
		{"redis", `unexpected argument "redis"`},
		{"-save nowhere/at-all", "-save: stat nowhere/at-all: no such file"},
		{"-held -3", "-held -3: want a number of locks"},
	} {
		err := execute(t.Context(), strings.Fields(test.args), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("bench %s: %v, want %q", test.args, err, test.want)
		}
	}
	var out bytes.Buffer
	if err := execute(t.Context(), []string{"-list", "-run", "^redis/h"}, &out); err != nil || out.String() != "redis/hand-off\nredis/held\n" {
		t.Errorf("bench -list -run ^redis/h: %q, %v", out.String(), err)
	}
}
