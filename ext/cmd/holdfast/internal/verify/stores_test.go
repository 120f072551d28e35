//go:build unix

package verify

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/holdfast-go/holdfast/ext/all"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/history"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
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

// TestStores puts every store to the proof for a short while, by another seed each time
// that it runs, as it does in CI whether or not anything has changed, and each of its
// faults has to meet somebody at work. "make torture" does so for longer, with every
// fault that can be done to it.
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
			t.Parallel()
			c := Default()
			c.Start, c.Seed, c.Length = name, uint64(rand.Uint32()), 20*time.Second
			c.Workers, c.Clients, c.Keys, c.Fewest = 3, 6, 4, 30 // few processes, for a busy machine, that meet often
			c.Command = []string{os.Args[0], "work"}
			c.Stderr = os.Stderr
			c.Out = kept(t)
			can, _, err := Faults(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []plan.Nemesis{plan.Kill, plan.Pause, plan.DropReply, more[name]} {
				if slices.Contains(can, n) {
					c.Nemeses = append(c.Nemeses, n)
				}
			}
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
			if err := report.Err(); err != nil {
				t.Errorf("%v\n%s\n%s", err, strings.Join(report.told(), "\n"), report.Command)
			}
		})
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
