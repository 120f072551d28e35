//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

// TestDocsVerify reads each "holdfast verify" of the documents as the command
// would, and asks whether the store can meet with those faults. STORE stands for
// every store that can.
func TestDocsVerify(t *testing.T) {
	documents, err := filepath.Glob(repository + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	inline := regexp.MustCompile("(?m)(?:^|`)holdfast (verify [^`\n]+)")
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
	command, flags, err := root().Find(args)
	if err == nil {
		err = command.ParseFlags(flags)
	}
	if err != nil {
		t.Errorf("%v: %v", args, err)
		return false
	}
	var named []plan.Nemesis
	if text := command.Flag("nemesis").Value.String(); text != "" {
		if named, err = plan.ParseNemeses(text); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
	for _, engine := range engines {
		known, _, err := verify.Faults(engine)
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		can = can || !slices.ContainsFunc(named, func(n plan.Nemesis) bool { return !slices.Contains(known, n) })
	}
	return can
}

// proofs say which runs of verify are behind the table at the head of the
// guarantees: which servers behind a line, which faults behind a column.
var (
	proofsByStore = map[string][]string{
		"files": {"file"}, "SQLite": {"sqlite"}, "Redis": {"redis", "redis:2"},
		"Redis, Sentinels": {"redis-sentinel"}, "Redis Cluster": {"redis-cluster"}, "Redlock": {"redis:3", "redis:5", "redis:7"},
		"etcd": {"etcd:3"}, "ZooKeeper": {"zookeeper:3"}, "PostgreSQL": {"postgres"}, "MySQL, MariaDB": {"mariadb"},
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

// TestGuaranteesAgree holds the table at the head of the guarantees against what
// verify takes a store to promise: a plain cell is what verify can show.
func TestGuaranteesAgree(t *testing.T) {
	text, err := os.ReadFile(repository + "/docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	var head []string
	lines := 0
	for line := range strings.Lines(string(text)) {
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
			want := shown(t, proofsByStore[name[1]], proofsByFault[fault])
			if plain := !unproved.MatchString(cell); plain != (want != nil) || plain && !slices.Contains(want, cell) {
				t.Errorf("%s, %s: the table says %s; verify shows one of %q", name[1], fault, cell, want)
			}
		}
	}
	if lines != len(proofsByStore) {
		t.Errorf("the table has %d stores, want %d", lines, len(proofsByStore))
	}
}

// unproved is a cell that verify does not show.
var unproved = regexp.MustCompile(`^(–|\*.*\*|\(.*\))$`)

// shown returns what a cell may say about faults that can be done to any of the
// engines, nil if none can.
func shown(t *testing.T, engines []string, faults []plan.Nemesis) (words []string) {
	t.Helper()
	for _, engine := range engines {
		can, stands, err := verify.Faults(engine)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range faults {
			if slices.Contains(can, n) && !slices.Contains(stands, n) {
				return []string{"overlap", "broken"}
			}
			if slices.Contains(can, n) {
				words = []string{"kept", "told", "told late"}
			}
		}
	}
	return words
}
