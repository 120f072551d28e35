package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/workers"
)

func TestMain(m *testing.M) {
	workers.Main(func([]string) error { main(); return nil })
	os.Exit(m.Run())
}

// A sending is what a replica says when it has sent the invoices.
type sending struct {
	tick  string
	pid   int
	token uint64
}

// Of three replicas, the one that has just sent the invoices is killed, twice. The last
// one goes on, and no tick is run again. Worth 10 s: whoever kills a replica waits for the
// TTL of its lock.
func TestCronOnEveryReplica(t *testing.T) {
	t.Parallel()
	replicas, sendings := start(t, 3)
	var all []sending
	next := func() sending {
		select {
		case s, more := <-sendings:
			if !more {
				t.Fatal("all replicas have ended")
			}
			all = append(all, s)
			return s
		case <-time.After(3 * time.Minute): // only a slow file system needs as long
			t.Fatal("nobody has sent invoices for three minutes")
		}
		return sending{}
	}
	for len(replicas) > 1 {
		next()
		last := next()
		if err := replicas[last.pid].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		delete(replicas, last.pid)
		for next().pid == last.pid { // what it had said before
		}
	}
	next()
	for _, r := range replicas {
		if err := r.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	for s := range sendings {
		all = append(all, s)
	}
	ticks, tokens := make(map[string]bool), make(map[uint64]bool)
	for _, s := range all {
		if ticks[s.tick] || tokens[s.token] {
			t.Errorf("the invoices of %s were sent twice, or with the token of others: %v", s.tick, all)
		}
		ticks[s.tick], tokens[s.token] = true, true
	}
}

// start starts replicas, and returns them by their pid, and what they do until all of
// them have ended.
func start(t *testing.T, n int) (map[int]*workers.Worker, <-chan sending) {
	store := "sqlite://" + filepath.Join(t.TempDir(), "locks.db")
	replicas := make(map[int]*workers.Worker)
	sendings := make(chan sending)
	var done sync.WaitGroup
	for range n {
		r := workers.Start(t, "-store", store, "-schedule", "* * * * * *")
		replicas[r.Process.Pid] = r
		done.Go(func() {
			for lines := bufio.NewScanner(r.Out); lines.Scan(); {
				var s sending
				if _, err := fmt.Sscanf(lines.Text(), "%s invoices sent by process %d with token %d", &s.tick, &s.pid, &s.token); err != nil {
					t.Errorf("%q: %v", lines.Text(), err)
				}
				sendings <- s
			}
			if err := r.Wait(); err != nil && err.Error() != "signal: killed" {
				t.Error(err)
			}
		})
	}
	go func() {
		done.Wait()
		close(sendings)
	}()
	return replicas, sendings
}
