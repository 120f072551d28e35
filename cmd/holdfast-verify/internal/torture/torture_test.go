package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/prover"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// every returns all trials.
func every(t *testing.T) []trial {
	t.Helper()
	trials, err := choose(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return trials
}

func TestEveryFaultIsDone(t *testing.T) {
	trials := every(t)
	for _, store := range verify.Engines() {
		can, stands, err := verify.Faults(store)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, n := range can {
			want = append(want, string(n))
		}
		want = append(want, allPromised, longLived)
		if len(stands) < len(can) {
			want = append(want, allPossible)
		}
		var got []string
		for _, trial := range trials {
			if trial.store == store {
				got = append(got, trial.faults)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s suffers %v, want %v", store, got, want)
		}
	}
}

func TestChoose(t *testing.T) {
	got, err := choose([]string{"redis", "file"}, []string{"clock", "kill"})
	if err != nil || len(got) != 3 || got[0].store != "file" || got[2].faults != "clock" || got[2].stands {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := choose([]string{"abacus"}, nil); !errors.Is(err, verify.ErrEngine) {
		t.Errorf("an unknown store: %v", err)
	}
	for _, wrong := range []string{"fire", "clock"} {
		if _, err := choose([]string{"etcd"}, []string{wrong}); err == nil {
			t.Errorf("etcd suffers %s", wrong)
		}
	}
}

// Verify refuses a run into which a fault does not fit that it was told to do.
func TestFaultsFitIn(t *testing.T) {
	respite := func(ttl time.Duration) time.Duration { return 5*ttl + time.Second } // of servers that need the longest
	c := verify.Default()
	for _, trial := range every(t) {
		if trial.faults == allPromised {
			continue // not told
		}
		ttl, workers := c.TTL, c.Workers
		if trial.faults == longLived {
			ttl, workers = longLease, 2*workers
		}
		for seed := range uint64(200) {
			f := plan.Faults{Seed: seed, Nemeses: trial.nemeses, Workers: workers, Nodes: 1, TTL: ttl, Length: trial.lasts(shortest), Respite: respite(ttl)}
			all := f.Schedule()
			for _, n := range trial.nemeses {
				if !slices.ContainsFunc(all, func(fault plan.Fault) bool { return fault.Nemesis == n }) {
					t.Errorf("%s %s with seed %d: no %s within %v", trial.store, trial.faults, seed, n, f.Length)
				}
			}
		}
	}
}

func TestAllFits(t *testing.T) {
	all := every(t)
	two, one := fitting(all, usual, 2), fitting(all, usual, 1)
	if two < shortest*3/2 || one >= two {
		t.Errorf("runs of %v, two at once, and of %v, one at once", two, one)
	}
	if short := fitting(all, time.Minute, 2); short >= shortest {
		t.Errorf("runs of %v fit into a minute", short)
	}
}

// Of faults together it is told how often each has met somebody at work.
func TestMet(t *testing.T) {
	kill, pause := verify.Nemesis{Name: "kill", Faults: 3, Hits: 2}, verify.Nemesis{Name: "pause", Faults: 5, Hits: 4}
	for want, test := range map[string]struct {
		faults string
		all    []verify.Nemesis
	}{
		"2":                  {"kill", []verify.Nemesis{kill}},
		"2: kill 2":          {longLived, []verify.Nemesis{kill}},
		"6: kill 2, pause 4": {allPromised, []verify.Nemesis{kill, pause}},
	} {
		if _, got := (result{trial: trial{faults: test.faults}, Report: &verify.Report{Nemeses: test.all}}).met(); got != want {
			t.Errorf("%s of %v: %q, want %q", test.faults, test.all, got, want)
		}
	}
}

func TestTables(t *testing.T) {
	report := func(nemesis string) *verify.Report {
		return &verify.Report{
			Build: "v1.2.0 0123456789ab", Server: "Etcetera 3.4", Operations: 1_234_567, Violations: make(map[check.Promise]int), Waived: make(map[check.Promise]int),
			Nemeses: []verify.Nemesis{{Name: nemesis, Faults: 3, Hits: 2}},
		}
	}
	results := []result{
		{trial: trial{"redis", "kill", nil, true}, Command: "holdfast one", Report: report("kill")},
		{trial: trial{"redis", "evict", nil, false}, Command: "holdfast two", Report: report("evict")},
		{trial: trial{"redis", "long", nil, true}, Command: "holdfast long", Report: report("slow")},
		{trial: trial{"etcd", "kill", nil, true}, Command: "holdfast three", Report: report("kill")},
		{trial: trial{"etcd", "pause", nil, true}, Command: "holdfast four"},
		{trial: trial{"etcd", "evict", nil, false}, Command: "holdfast five", Again: true, Report: &verify.Report{Invalid: "few locks", Grants: 1}},
	}
	results[1].Report.Waived[check.Exclusive] = 11
	results[1].Report.Waived[check.Told] = 4
	results[3].Report.Violations[check.Growing] = 1
	results[0].Report.Unchecked = map[check.Promise]string{check.Kept: "too short", check.Single: "no effect"}
	results[1].Report.Unchecked = map[check.Promise]string{check.Kept: "too short"}
	results[3].Report.Unchecked = map[check.Promise]string{check.Lively: "nobody"}
	text := string(tables("make all of it", false, results))
	for _, want := range []string{
		"|  | kill | pause | evict | long |\n", "| redis | held | – | (15) | held |\n", "| etcd | **BROKEN** | not done | unproved | – |\n", "\n    make all of it\n\n## Totals",
		"nothing beside them | 1 |\n",
		"| operations | 4,938,268 |\n", "| `kill` | 6 | 4 |\n", "| evict | exclusion (11), told (4) | 3 | 2 |", "| kill | tokens 1 BROKEN |", "`holdfast three`",
		"\nHoldfast v1.2.0 0123456789ab, go", "## redis\n\nEtcetera 3.4.\n\n",
		"| `tokens` | 4 | 1 | 0 |\n", "| `told` | 4 | 0 | 4 |\n", "| `kept` | 2 | 0 | 0 |\n",
		"Only with long `kept` was checked: too short.\n", "In none of these runs `progress` was checked: nobody.\n", "With kill `once` was not checked: no effect.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text[strings.Index(text, "## redis"):strings.Index(text, "## etcd")]) {
		if n := strings.Count(line, "|"); n != 0 && n != strings.Count(runsHead, "|")/2 {
			t.Errorf("the line has other columns than the head: %s", line)
		}
	}
}

// The tables of a part say so, and name the stores.
func TestTablesOfAPart(t *testing.T) {
	results := []result{
		{trial: trial{"redis", "kill", nil, true}, Command: "holdfast one"},
		{trial: trial{"etcd:3", "kill", nil, true}, Command: "holdfast two"},
	}
	const note = "**This is a part of the torture**, not a whole pass: redis, etcd:3, 2 runs."
	if text := string(tables("make some of it", true, results)); !strings.HasPrefix(text, "# Tables of a part of the torture\n\n") || !strings.Contains(text, "figures mean.\n\n"+note) {
		t.Errorf("the tables of a part do not say so:\n%s", text)
	}
	if text := string(tables("make all of it", false, results)); strings.Contains(text, "part") {
		t.Errorf("the tables of a whole pass:\n%s", text)
	}
}

// A report that is there is used again, if it is of the same command and build.
func TestReportsAreKept(t *testing.T) {
	p := &pass{folder: t.TempDir()}
	kept := result{trial: trial{store: "redis:3", faults: "kill"}, Command: "holdfast one", Build: "this build", Again: true, Report: &verify.Report{Operations: 7}}
	if err := p.keep(kept); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command, build string
		want           bool
	}{
		{"holdfast one", "this build", true},
		{"holdfast two", "this build", false},
		{"holdfast one", "another", false},
	} {
		r := result{trial: kept.trial, Command: c.command, Build: c.build}
		if got := p.recall(&r); got != c.want || got && (r.Report.Operations != 7 || !r.Again) {
			t.Errorf("%s of %s: %v, %+v", c.command, c.build, got, r.Report)
		}
	}
	for why, want := range map[*verify.Report]bool{
		{Invalid: "few locks", Grants: 1}: false,
		{Invalid: "no locks"}:             true, // which is broken
		{Invalid: "no locks", Violations: map[check.Promise]int{check.Fenced: 1}}: true, // which is something
	} {
		if err := p.keep(result{trial: kept.trial, Command: "holdfast one", Build: "this build", Report: why}); err != nil {
			t.Fatal(err)
		}
		r := result{trial: kept.trial, Command: "holdfast one", Build: "this build"}
		if got := p.recall(&r); got != want {
			t.Errorf("a report that says %v is used again: %v", why.Err(), got)
		}
	}
}

// A trial with a long lease is to show that locks are kept.
func TestLongHasToShowKept(t *testing.T) {
	idle := &verify.Report{Unchecked: map[check.Promise]string{check.Kept: "no renewal"}}
	for faults, want := range map[string]bool{longLived: true, allPromised: false} {
		r := result{trial: trial{"redis", faults, nil, true}, Report: idle}
		if got := r.unproved(); got != want || got != strings.Contains(r.verdict(), "no renewal") {
			t.Errorf("%s without a renewal is unproved: %v, %s", faults, got, r.verdict())
		}
	}
}

// A run that has proved nothing is done again, alone and once, when all others are over.
func TestUnprovedIsDoneAgain(t *testing.T) {
	folder := t.TempDir()
	program := filepath.Join(folder, "holdfast")
	script := `#!/bin/sh
echo "$5" >> ` + folder + `/ran
case "$5" in
kill) [ "$(grep -c kill ` + folder + `/ran)" = 2 ] && echo '{"operations": 7}' && exit ;;
slow) ;;
*) echo '{"operations": 3}' && exit ;;
esac
echo '{"invalid": "few locks", "grants": 1}'
exit 77
`
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	var trials []trial
	for _, n := range []plan.Nemesis{plan.Kill, plan.Slow, plan.Pause} {
		trials = append(trials, trial{"redis", string(n), []plan.Nemesis{n}, true})
	}
	var out bytes.Buffer
	p := &pass{length: shortest, parallel: 1, out: &out, program: prover.Program(program)}
	results, err := p.all(t.Context(), trials)
	if _, idle, _ := strings.Cut(out.String(), "not proved: "); err != nil || !strings.Contains(idle, "slow") || strings.Contains(idle, "kill") {
		t.Errorf("got %v, and the report %q", err, idle)
	}
	if ran, err := os.ReadFile(filepath.Join(folder, "ran")); err != nil || string(ran) != "kill\nslow\npause\nkill\nslow\n" {
		t.Errorf("it ran %q, %v", ran, err)
	}
	if _, err := p.all(t.Context(), trials[1:2]); !errors.Is(err, verify.ErrUnproved) {
		t.Errorf("a pass that has proved nothing ends with %v", err)
	}
	for i, want := range []string{"held", "unproved", "held"} {
		if got := results[i].cell(); got != want || results[i].Again != (i < 2) {
			t.Errorf("%s: %s, again %v", trials[i].faults, got, results[i].Again)
		}
	}
}

// The tables name the command of the pass.
func TestCommand(t *testing.T) {
	p := &pass{length: 8 * time.Second, parallel: 3, seed: 7, stores: "redis,etcd:3", faults: "kill"}
	if got, want := p.command(), `make torture TORTURE="-for 8s -parallel 3 -seed 7 -store redis,etcd:3 -nemesis kill"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The tables of a part replace neither those of a whole pass nor those of another part.
func TestPartIsNotSaved(t *testing.T) {
	if whole, part := new(pass).file(), (&pass{faults: "kill"}).file(); whole == part {
		t.Errorf("the tables of a part are in %s, too", whole)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, partFile), []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"-store", "file"}, {"-nemesis", "kill"}} {
		err := execute(t.Context(), append(args, "-save", folder), io.Discard)
		if err == nil || !strings.Contains(err.Error(), "another folder") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A pass is interrupted in its second run. Nothing of that is left behind, and the
// report of the first makes the tables.
func TestPass(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 40 s: make prove")
	}
	scratch, reports, docs := t.TempDir(), t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", scratch)
	kill := filepath.Join(reports, "file-kill.json")
	args := []string{"-store", "file", "-for", "5s", "-seed", "7", "-parallel", "1", "-out", reports, "-save", docs}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, append(args, "-nemesis", "kill,pause"), io.Discard) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-tick.C:
			_, first := os.Stat(kill)
			workers, _ := filepath.Glob(filepath.Join(scratch, "holdfast-verify-*", "worker*.jsonl"))
			if first == nil && len(workers) > 0 {
				cancel()
			}
		}
	}
	left, broken := os.ReadDir(scratch)
	if !errors.Is(err, context.Canceled) || broken != nil || len(left) > 0 {
		t.Fatalf("it has ended with %v, and left %v, %v", err, left, broken)
	}

	if err := execute(t.Context(), append(args, "-nemesis", "kill"), io.Discard); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(docs, partFile))
	if err != nil || !strings.Contains(string(text), "holdfast verify --start file --nemesis kill --for 5s --clients 16 --keys 32 --seed 7") {
		t.Errorf("%v\n%s", err, text)
	}
}
