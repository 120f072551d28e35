//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

const repository = "../.."

// TestDocsVerify reads each "holdfast verify" of the documents as the command
// would, and asks whether the store can meet with those faults. STORE stands for
// every store that can.
func TestDocsVerify(t *testing.T) {
	documents, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile("(?m)(?:^|`)holdfast (verify --[^`\n]+)")
	found := 0
	for _, document := range append(documents, repository+"/README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range inline.FindAllStringSubmatch(string(text), -1) {
			if found++; !possible(t, strings.Fields(match[1])) {
				t.Errorf("%s: no store of --start can meet with %q", document, match[1])
			}
		}
	}
	if found == 0 {
		t.Error("the documents show no command")
	}
}

// possible reports whether verify can do what its arguments say, in one store at
// least.
func possible(t *testing.T, args []string) (can bool) {
	t.Helper()
	engines := []string{"file"}
	switch i := slices.Index(args, "--start"); {
	case slices.Contains(args, "--store"):
		return true
	case i > 0 && args[i+1] == "STORE":
		engines = verify.Engines()
	case i > 0:
		engines = args[i+1 : i+2]
	}
	f := newCall()
	if err := f.parse(args[1:]); err != nil {
		t.Errorf("%v: %v", args, err)
		return false
	}
	for _, engine := range engines {
		known, _, err := verify.Faults(engine)
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		can = can || !slices.ContainsFunc(f.Nemeses, func(n plan.Nemesis) bool { return !slices.Contains(known, n) })
	}
	return can
}

// proofs say which runs of verify are behind the table at the head of the
// guarantees: which servers behind a line, which faults behind a column.
var (
	proofsByStore = map[string][]string{
		"files": {"file"}, "SQLite": {"sqlite"}, "Redis": {"redis", "redis:2"},
		"Redis, Sentinels": {"redis-sentinel"}, "Redis Cluster": {"redis-cluster"}, "Redlock": {"redis:3", "redis:5", "redis:7"},
		"etcd": {"etcd:3"}, "NATS": {"nats", "nats:3"}, "S3": {"s3"}, "GCS": {"gcs"}, "DynamoDB": {"dynamodb"}, "Azure": {"azblob"}, "ZooKeeper": {"zookeeper:3"}, "PostgreSQL": {"postgres", "postgres:2"}, "MySQL, MariaDB": {"mariadb"},
		"their sessions": {"postgres-session", "mariadb-session"}, "Memcached": {"memcached"},
	}
	proofsByFault = map[string][]plan.Nemesis{
		"holder paused":       {plan.Pause},
		"network fails":       {plan.Partition, plan.Slow, plan.DropReply},
		"server restarts":     {plan.Restart},
		"server away":         {plan.KillStore, plan.PauseStore, plan.CutStore},
		"another takes over":  {plan.Failover, plan.StaleFailover, plan.SwitchOver},
		"clock set":           {plan.Clock, plan.WorkerClock},
		"data evicted, lost":  {plan.Evict, plan.Flush},
		"memory or disk full": {},
	}
)

// A trial is a line of the tables of the torture.
type trial struct {
	engine, faults, checks string
	hits                   string // a number, and for faults together those of each
	losses                 string
}

// tortures returns the tables of the torture: those of a whole pass, and those of a part with stores
// that the whole pass did not have.
func tortures(t *testing.T) (names []string) {
	t.Helper()
	found, err := filepath.Glob(repository + "/docs/results/torture-*.md")
	if err != nil || len(found) == 0 {
		t.Fatalf("no tables of the torture: %v", err)
	}
	for _, path := range found {
		names = append(names, "results/"+filepath.Base(path))
	}
	return names
}

// trials reads the tables of the torture.
func trials(t *testing.T) (all []trial) {
	t.Helper()
	engine, text := "", ""
	for _, name := range tortures(t) {
		text += document(t, name)
	}
	for line := range strings.Lines(text) {
		if name, heading := strings.CutPrefix(line, "## "); heading {
			engine = strings.TrimSpace(name)
		}
		cells := strings.Split(line, " | ")
		if faults := strings.TrimPrefix(cells[0], "| "); len(cells) == 13 && slices.Contains(append(nemeses(), "promised", longLived), faults) {
			all = append(all, trial{engine, faults, cells[1], cells[3], cells[6]})
		}
	}
	if len(all) == 0 {
		t.Fatal("the tables of the torture have no line")
	}
	return all
}

func nemeses() (names []string) {
	for _, n := range plan.Nemeses() {
		names = append(names, string(n))
	}
	return names
}

// met is how often a fault has met somebody at work.
func (r trial) met(n plan.Nemesis) int {
	text := r.hits
	if r.faults != string(n) {
		_, text, _ = strings.Cut(text, " "+string(n)+" ")
	}
	digits := regexp.MustCompile(`^[0-9,]*`).FindString(text)
	met, _ := strconv.Atoi(strings.ReplaceAll(strings.TrimSuffix(digits, ","), ",", ""))
	return met
}

// seen counts the breaches of some promises that were not held against the store.
func (r trial) seen(promises ...check.Promise) (n int) {
	for _, p := range promises {
		if found := regexp.MustCompile(string(p) + ` \(([0-9]+)\)`).FindStringSubmatch(r.checks); found != nil {
			more, _ := strconv.Atoi(found[1])
			n += more
		}
	}
	return n
}

// fewestMet is how often a fault must have met somebody at work to have shown that
// something holds.
const fewestMet = 6

// TestGuaranteesAgree holds the table at the head of the guarantees against the tables of
// the torture: a plain cell is what they show.
func TestGuaranteesAgree(t *testing.T) {
	tried := trials(t)
	var head []string
	lines := 0
	for line := range strings.Lines(document(t, "guarantees.md")) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(cells[0], "| store") && head == nil {
			head = cells
		}
		name := regexp.MustCompile(`^\| \[(.*)\]\(#`).FindStringSubmatch(cells[0])
		if name == nil {
			continue
		}
		lines++
		for i := 2; i < len(cells); i++ {
			fault, cell := strings.TrimSuffix(head[i], " |"), strings.TrimSuffix(cells[i], " |")
			want, why := listed(t, tried, proofsByStore[name[1]], proofsByFault[fault])
			plain := !unproved.MatchString(cell)
			if plain && !slices.Contains(want, cell) {
				t.Errorf("%s, %s: the guarantees say %s, and the torture shows %q: %s", name[1], fault, cell, want, why)
			}
			if word := strings.Trim(cell, "()"); !plain && slices.Contains(want, word) {
				t.Logf("%s, %s: the guarantees say %s, and the torture shows it by now", name[1], fault, cell)
			}
		}
	}
	if lines != len(proofsByStore) {
		t.Errorf("the table has %d stores, want %d", lines, len(proofsByStore))
	}
}

// docs/torture.md says that no promise was broken, and which were not even where a store
// does not promise them.
func TestTortureAgrees(t *testing.T) {
	for _, name := range tortures(t) {
		text := document(t, name)
		for _, p := range check.Promises() {
			count := regexp.MustCompile("(?m)^\\| `" + string(p) + "` \\| [0-9,]+ \\| ([0-9,]+) \\| ([0-9,]+) \\|$").FindStringSubmatch(text)
			if count == nil {
				t.Errorf("%s: the totals lack %s", name, p)
				continue
			}
			everywhere := slices.Contains([]check.Promise{check.Fenced, check.Lively, check.Single, check.Tidy}, p)
			if count[1] != "0" || everywhere && count[2] != "0" {
				t.Errorf("%s: %s was broken %s times, and %s times where it is not promised", name, p, count[1], count[2])
			}
		}
	}
}

// document reads one of the documents.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// unproved is a cell that the torture does not show.
var unproved = regexp.MustCompile(`^(–|\*.*\*|\(.*\))$`)

// listed returns what a cell may say about faults that can be done to any of the
// engines, the most first, and if it may say nothing, why.
func listed(t *testing.T, tried []trial, engines []string, faults []plan.Nemesis) (words []string, why string) {
	t.Helper()
	tries, unpromised, lost, overlaps, tokens, breaks := false, false, false, 0, 0, 0
	for _, engine := range engines {
		can, stands, err := verify.Faults(engine)
		if err != nil {
			t.Fatal(err)
		}
		met, possible := 0, false
		for _, n := range faults {
			possible = possible || slices.Contains(can, n)
			unpromised = unpromised || slices.Contains(can, n) && !slices.Contains(stands, n)
			for _, r := range tried {
				if r.engine != engine {
					continue
				}
				if r.checks == "ok" {
					met += r.met(n)
				}
				if r.faults == string(n) {
					overlaps += r.seen(check.Exclusive, check.Told)
					tokens += r.seen(check.Growing)
					breaks += r.seen(check.Fenced)
				}
			}
		}
		tries = tries || possible
		if possible && met < fewestMet {
			why = fmt.Sprintf("only %d of these faults have met somebody at work in %s", met, engine)
		}
		lost = lost || possible && !stood(tried, engine, faults)
	}
	switch {
	case !tries:
		return nil, "none can be done"
	case breaks > 0:
		return []string{"broken"}, ""
	case tokens > 0: // of readers and former primaries, if it is not worse
		return []string{"overlap", "broken"}, ""
	case overlaps > 0:
		return []string{"overlap"}, ""
	case unpromised:
		return nil, "no breach was seen"
	case why != "":
		return nil, why
	case lost:
		return []string{"told", "told late"}, ""
	}
	return []string{"kept", "told", "told late"}, ""
}

// longLived are the trials in which each lock outlives the faults, if it is renewed.
const longLived = "long"

// stood reports whether any of the faults has met somebody at work in such a trial of an
// engine, and no lock was lost. A server that was away has been restarted, too.
func stood(tried []trial, engine string, faults []plan.Nemesis) bool {
	if slices.Contains(faults, plan.Restart) {
		faults = append(slices.Clone(faults), plan.KillStore)
	}
	for _, r := range tried {
		met := slices.ContainsFunc(faults, func(n plan.Nemesis) bool { return r.met(n) > 0 })
		if r.engine == engine && r.faults == longLived && r.checks == "ok" && r.losses == "0" && met {
			return true
		}
	}
	return false
}

// A cell needs runs that show it, and says no more than that.
func TestShown(t *testing.T) {
	for name, test := range map[string]struct {
		fault plan.Nemesis
		tried []trial
		want  string
	}{
		"stood often":            {plan.Kill, []trial{{"redis", "kill", "ok", strconv.Itoa(fewestMet), "0"}}, "told"},
		"stood among others":     {plan.Kill, []trial{{"redis", "promised", "ok", "1,024: pause 9, kill 12, slow 1", "0"}}, "told"},
		"stood seldom":           {plan.Kill, []trial{{"redis", "kill", "ok", strconv.Itoa(fewestMet - 1), "0"}}, ""},
		"broken":                 {plan.Kill, []trial{{"redis", "kill", "tokens 1 BROKEN", "9", "0"}}, ""},
		"another store's":        {plan.Kill, []trial{{"etcd", "kill", "ok", "9", "0"}}, ""},
		"another fault's":        {plan.Kill, []trial{{"redis", "kill-store", "ok", "9", "0"}, {"redis", "promised", "ok", "9: kill-store 9", "0"}}, ""},
		"cannot be done":         {plan.CutStore, []trial{{"redis", "cut-store", "ok", "9", "0"}}, ""},
		"no breach seen":         {plan.Flush, []trial{{"redis", "flush", "ok", "9", "0"}}, ""},
		"seen to overlap":        {plan.Flush, []trial{{"redis", "flush", "exclusion (3), told (2)", "5", "0"}}, "overlap"},
		"seen with old tokens":   {plan.Flush, []trial{{"redis", "flush", "exclusion (3), tokens (1)", "5", "0"}}, "overlap"},
		"seen to fool the fence": {plan.Flush, []trial{{"redis", "flush", "fence (1), tokens (1)", "5", "0"}}, "broken"},
		"lost no lock":           {plan.Restart, []trial{{"redis", "restart", "ok", "9", "3"}, {"redis", "long", "ok", "1: restart 1", "0"}}, "kept"},
		"lost one":               {plan.Restart, []trial{{"redis", "restart", "ok", "9", "3"}, {"redis", "long", "ok", "2: slow 1, restart 1", "1"}}, "told"},
		"met nobody":             {plan.Restart, []trial{{"redis", "restart", "ok", "9", "3"}, {"redis", "long", "ok", "1: slow 1, restart 0", "0"}}, "told"},
		"was away":               {plan.Restart, []trial{{"redis", "restart", "ok", "9", "3"}, {"redis", "long", "ok", "1: slow 0, kill-store 1", "0"}}, "kept"},
		"another store's locks":  {plan.Restart, []trial{{"redis", "restart", "ok", "9", "3"}, {"etcd", "long", "ok", "2: slow 1, restart 1", "0"}}, "told"},
	} {
		words, why := listed(t, test.tried, []string{"redis"}, []plan.Nemesis{test.fault})
		if test.want == "" && (words != nil || why == "") || test.want != "" && (words == nil || words[0] != test.want) {
			t.Errorf("%s: %q, %q; want %q", name, words, why, test.want)
		}
	}
}
