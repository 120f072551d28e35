package main

import (
	"flag"
	"fmt"
	gobuild "go/build"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/overlay"
)

// The worlds whose seeds can be replayed.
var worlds = []string{"TestSeeds", "TestRedlock", "TestMemcached", "TestCAS", "TestSessions", "TestSQL", "TestOnce", "TestElect", "TestSchedlock"}

var (
	first = flag.Uint64("first", 1, "let TestReplayTwice begin with this seed")
	seeds = flag.Uint64("seeds", 3, "let TestReplayTwice replay this many `seeds` of each world")
)

// The same seed gives the same timeline, byte by byte, at other addresses too.
func TestReplayTwice(t *testing.T) {
	programs := map[string]string{simulator: compile(t, simulator, ""), home("TestSchedlock"): compile(t, home("TestSchedlock"), "")}
	type run struct {
		world string
		seed  uint64
	}
	once := make(map[run]string)
	for _, world := range worlds {
		for seed := *first; seed < *first+*seeds; seed++ {
			once[run{world, seed}], _ = replayed(t, programs[home(world)], world, seed)
		}
	}
	move(t)
	for r, before := range once {
		if again, _ := replayed(t, programs[home(r.world)], r.world, r.seed); again != before {
			t.Errorf("%s: seed %d has given two timelines, which differ %s", r.world, r.seed, difference(before, again))
		}
	}
}

// A run that fails is the same each time too.
func TestReplayFailure(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	mutant, err := overlay.Write(t.TempDir(), overlay.In(root, []overlay.Edit{{
		File: "internal/engine/lease.go",
		Old:  "l.deadline.Store(int64(sent + l.ttl - margin(l.ttl)))",
		New:  "l.deadline.Store(int64(sent + l.ttl + l.ttl/2))",
	}}))
	if err != nil {
		t.Fatal(err)
	}
	program := compile(t, simulator, mutant)
	var once, failure string
	seed := uint64(0)
	for failure == "" {
		if seed++; seed > 200 {
			t.Fatal("the mutant has not failed")
		}
		once, failure = replayed(t, program, "TestSeeds", seed)
	}
	if again, _ := replayed(t, program, "TestSeeds", seed); once != again {
		t.Errorf("a failure has given two timelines, which differ %s", difference(once, again))
	}
}

// known are the releases of Go that the edits fit.
var known = []string{"go1.25", "go1.26"}

// The edits fit the Go that is installed. A later Go may move the texts, which does not make
// a change of this repository wrong: then only replay waits for new edits.
func TestEditsFit(t *testing.T) {
	_, err := write(t.Context(), t.TempDir())
	if err == nil {
		return
	}
	tags := gobuild.Default.ReleaseTags
	if release := tags[len(tags)-1]; !slices.Contains(known, release) {
		t.Skipf("replay knows %s, not yet %s: %v", strings.Join(known, " and "), release, err)
	}
	t.Error(err)
}

// The toy of package exact says the same of each seed in several processes.
func TestToyTwice(t *testing.T) {
	program := compile(t, simulator+"/exact", "")
	toys := func() (said string) {
		cmd := exec.CommandContext(t.Context(), program, "-test.v", "-seeds=8")
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "seed ") {
				said += line
			}
		}
		return said
	}
	first := toys()
	move(t)
	if lines := strings.Split(strings.TrimSpace(first), "\n"); len(lines) != 8 || lines[0] == lines[1] {
		t.Fatalf("8 seeds have given:\n%s", first)
	}
	for range 5 {
		if again := toys(); again != first {
			t.Fatalf("the same seeds have given first:\n%sand then:\n%s", first, again)
		}
	}
}

// move gives the next processes other addresses, which come after a larger environment.
func move(t *testing.T) {
	for i := range 1000 {
		t.Setenv(fmt.Sprint("HOLDFAST_REPLAY_", i), "")
	}
}

// compile builds the tests of a package.
func compile(t *testing.T, pkg, extra string) (program string) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes a minute, for the standard library: make prove")
	}
	if !slices.Contains(gobuild.Default.ReleaseTags, "go1.26") {
		t.Skip("replay needs Go 1.26 or newer")
	}
	program = filepath.Join(t.TempDir(), "test")
	if err := build(t.Context(), pkg, program, extra); err != nil {
		t.Fatal(err)
	}
	return program
}

// replayed runs a seed in a process, and returns the timeline and what was wrong.
func replayed(t *testing.T, program, world string, seed uint64) (timeline, failure string) {
	t.Helper()
	folder := t.TempDir()
	failure, err := run(t.Context(), program, world, seed, 0, folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "timeline.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), failure
}

// difference is where two texts part.
func difference(a, b string) string {
	la, lb := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(la), len(lb)) {
		if la[i] != lb[i] {
			return fmt.Sprintf("from line %d of %d and %d:\n%s\n%s", i+1, len(la), len(lb), la[i], lb[i])
		}
	}
	return fmt.Sprintf("in length: %d and %d lines", len(la), len(lb))
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"x"}, {"-1"}, {"1", "2"}} {
		if err := execute(t.Context(), args, nil); err == nil {
			t.Errorf("%q are taken", args)
		}
	}
}

// The violation stands at the end of the timeline.
func TestShow(t *testing.T) {
	folder := t.TempDir()
	text := "seed 7\ncolumn 1 is goroutine a/1\n\n" + strings.Repeat("1ms  A  a/1 look k0\n", 100) + "2ms  A  a/1  wrong  exclusion k0: both\n3ms  ·  a/1 begin unlock k0\n"
	if err := os.WriteFile(filepath.Join(folder, "timeline.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := show(&out, folder, 3, "--- FAIL: TestSeeds (0.01s)\n    judge.go:1: seed 7: exclusion: both\n        again: go test\nmore"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seed 7\ncolumn 1", "... 41 events before\n1ms", "wrong  exclusion k0: both\n... 1 events after", "order 3 of goroutines fails:\nseed 7: exclusion: both\nall events"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
}

func TestMerge(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list, extra := write("a", `{"Replace": {"x": "1"}}`), write("b", `{"Replace": {"y": "2"}}`)
	if err := merge(list, extra); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(list); string(text) != `{"Replace":{"x":"1","y":"2"}}` || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	if err := merge(list, write("c", "no JSON")); err == nil || !strings.Contains(err.Error(), "c: ") {
		t.Errorf("a list that is none is taken: %v", err)
	}
}
