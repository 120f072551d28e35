//go:build unix

package verify

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/holdfast-go/holdfast/all"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// The workers of these tests are their own binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "work" {
		if err := Work(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// The clock of histories starts when it is first read, which is not to be in a
	// bubble of synctest: there it is the year 2000.
	history.Now()
	// Each of these tests is many processes.
	flag.Parse()
	most := flag.Lookup("test.parallel")
	if asked, err := strconv.Atoi(most.Value.String()); err != nil || asked > 6 {
		most.Value.Set("6")
	}
	os.Exit(m.Run())
}

// TestStores puts every store to the proof for a short while, and each fault has to meet a worker at work. "make torture" does so
// for longer, with every fault that can be done to a store.
func TestStores(t *testing.T) {
	more := map[string]plan.Nemesis{ // what else befalls some
		"file":           plan.WorkerClock,
		"redis:3":        plan.WorkerClock,
		"redis-sentinel": plan.Failover,
		"redis-cluster":  plan.Failover,
		"postgres:2":     plan.Failover,
	}
	for _, name := range Engines() {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("takes 30 s: make prove")
			}
			t.Parallel()
			c := Default()
			c.Start, c.Seed, c.Length = name, sim.Seed(t), 20*time.Second
			c.Workers, c.Clients, c.Keys, c.Fewest = 3, 6, 4, 30 // few processes, for a busy machine, that meet often
			if name == "azblob" {
				// The emulator has one thread. With more requests than it serves on a busy machine, all
				// clients have gone before it answers them.
				c.Clients, c.TTL = 2, 6*time.Second
			}
			can, _, err := Faults(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []plan.Nemesis{plan.Kill, plan.Pause, plan.DropReply, more[name]} {
				if slices.Contains(can, n) {
					c.Nemeses = append(c.Nemeses, n)
				}
			}
			prove(t, c)
		})
	}
}

// TestSomeStores does so in a few seconds: what verify itself needs to work.
func TestSomeStores(t *testing.T) {
	for name, faults := range map[string][]plan.Nemesis{
		"file":   {plan.Kill, plan.WorkerClock},
		"sqlite": {plan.Kill, plan.Pause},
		"redis":  {plan.Kill, plan.DropReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Default()
			c.Start, c.Seed, c.Length, c.TTL = name, sim.Seed(t), 5*time.Second, time.Second
			c.Workers, c.Clients, c.Keys, c.Fewest = 2, 2, 2, 10
			c.Nemeses = faults
			prove(t, c)
		})
	}
}

// prove does a run that is to find nothing broken.
func prove(t *testing.T, c Config) {
	t.Helper()
	c.Command = []string{os.Args[0], "work"}
	c.Stderr = os.Stderr
	c.Out = kept(t)
	report, err := Run(t.Context(), c)
	servers.Missing(t, err)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := report.Print(&out); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	skipUnproved(t, c, report)
	if err := report.Err(); err != nil {
		t.Errorf("%v\n%s\n%s", err, strings.Join(report.told(), "\n"), report.Command)
	}
}

// skipUnproved skips the rest of a test if some locks were granted in a run, but too
// little has happened: that is no failure of the product. If nothing was granted, or
// something has failed on the way, the test goes on, and fails.
func skipUnproved(t *testing.T, c Config, r *Report) {
	t.Helper()
	if err := r.Err(); errors.Is(err, ErrUnproved) && r.Invalid == r.lacks(c.Fewest, c.Nemeses != nil) {
		unproved.Skipf(t, "%v", err)
	}
}

// kept returns a folder that stays if the test fails.
func kept(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "verify-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() {
			os.RemoveAll(folder)
		}
	})
	return folder
}
