package locktest_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locktest"
)

// Three deposits, of which docs/testing.md tells. Each reads a balance, asks a bank, and
// writes the new balance under a lock. They differ in what a lost lock does to them.

// careless ignores its context.
func careless(ctx context.Context, p *locktest.Process, balance *locktest.Register[int]) error {
	return p.Locker().Do(ctx, "account/42", func(context.Context) error {
		b := balance.Read(p)
		askBank()
		balance.Write(p, b+1)
		return nil
	})
}

// hasty looks at its context, but only before the slow step.
func hasty(ctx context.Context, p *locktest.Process, balance *locktest.Register[int]) error {
	return p.Locker().Do(ctx, "account/42", func(ctx context.Context) error {
		b := balance.Read(p)
		if err := context.Cause(ctx); err != nil {
			return err
		}
		askBank()
		balance.Write(p, b+1)
		return nil
	})
}

// fenced has its token checked where the data is.
func fenced(ctx context.Context, p *locktest.Process, balance *locktest.FencedRegister[int]) error {
	return p.Locker().Do(ctx, "account/42", func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		token := lock.Fence()
		b, err := balance.Read(p, token)
		if err != nil {
			return err
		}
		askBank()
		return balance.Write(p, token, b+1)
	})
}

func askBank() { time.Sleep(2 * time.Second) }

// each lets three processes make four deposits each, and returns how many were confirmed.
func each(w *locktest.World, deposit func(p *locktest.Process) error) int {
	var confirmed atomic.Int64
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		all.Go(func() {
			for range 4 {
				if deposit(w.Process(name)) == nil {
					confirmed.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(confirmed.Load())
}

func TestCareless(t *testing.T) {
	fails(t)
	exploreCareless(t)
}

func exploreCareless(t *testing.T) {
	locktest.Explore(t, 300, func(t *testing.T, w *locktest.World) {
		balance := locktest.NewRegister("balance", 0)
		confirmed := each(w, func(p *locktest.Process) error { return careless(t.Context(), p, balance) })
		if b := balance.Value(); b < confirmed {
			t.Errorf("the balance is %d after %d confirmed deposits of 1", b, confirmed)
		}
	})
}

func TestHasty(t *testing.T) {
	fails(t)
	locktest.Explore(t, 300, func(t *testing.T, w *locktest.World) {
		balance := locktest.NewRegister("balance", 0)
		confirmed := each(w, func(p *locktest.Process) error { return hasty(t.Context(), p, balance) })
		if b := balance.Value(); b < confirmed {
			t.Errorf("the balance is %d after %d confirmed deposits of 1", b, confirmed)
		}
	})
}

func TestFenced(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 60
	}
	locktest.Explore(t, seeds, func(t *testing.T, w *locktest.World) {
		balance := locktest.NewFencedRegister("balance", 0)
		confirmed := each(w, func(p *locktest.Process) error { return fenced(t.Context(), p, balance) })
		if b := balance.Value(); b < confirmed {
			t.Errorf("the balance is %d after %d confirmed deposits of 1", b, confirmed)
		}
	})
}

// The deposit has its token checked where the data is. No update is lost in 300 seeds.
func ExampleExplore() {
	// A file of tests needs no main function: "go test" runs TestFenced.
	test := testing.InternalTest{Name: "TestFenced", F: TestFenced}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{test}, nil, nil)
}

// The deposit ignores its context. An update is lost within a few seeds, and the failure says
// what has happened. A look at the context before the slow step does not help: the lock is
// lost later.
func ExampleExplore_lostUpdate() {
	// A file of tests needs no main function, and exploreCareless is TestCareless there.
	test := testing.InternalTest{Name: "TestCareless", F: exploreCareless}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{test}, nil, nil)
}
