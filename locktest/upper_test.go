package locktest_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/elect"
	"github.com/holdfast-go/holdfast/locktest"
	"github.com/holdfast-go/holdfast/once"
)

// A leader that is cut off has a successor, and never overlaps with it.
func TestElection(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		leads := make(chan string)
		lead := func(p *locktest.Process) {
			all.Go(func() {
				_ = elect.Run(ctx, p.Locker(), "mailer", func(ctx context.Context) error {
					leads <- p.Name()
					<-ctx.Done()
					leads <- ""
					return ctx.Err()
				})
			})
		}
		a, b := w.Process("a"), w.Process("b")
		lead(a)
		if got := <-leads; got != "a" {
			t.Errorf("%q leads", got)
		}
		lead(b)
		a.Cut()
		if first, then := <-leads, <-leads; first != "" || then != "b" {
			t.Errorf("after the cut: %q, %q", first, then)
		}
		cancel()
		<-leads
		all.Wait()
	})
}

// Three processes that ask again until they succeed get one result, in each world.
func TestOnceIsExplored(t *testing.T) {
	seeds := 100
	if testing.Short() {
		seeds = 20
	}
	locktest.Explore(t, seeds, func(t *testing.T, w *locktest.World) {
		records := new(once.Memory)
		results := make(chan string, 3)
		for _, name := range []string{"a", "b", "c"} {
			p := w.Process(name)
			go func() {
				for {
					result, err := once.Runner{Locks: p.Locker(), Records: records, Retention: 240 * time.Hour}.Do(t.Context(), "order/7", func(context.Context) ([]byte, error) {
						p.Step()
						return []byte("paid by " + name), nil
					})
					if err == nil {
						results <- string(result)
						return
					}
					p.Step()
					time.Sleep(time.Second)
				}
			}()
		}
		if a, b, c := <-results, <-results, <-results; a != b || b != c {
			t.Errorf("results %q, %q and %q", a, b, c)
		}
	})
}

// The seed ends its own faults only, and code with retries succeeds in the end.
func TestSeedsLeaveTheFaultsOfTheTestAlone(t *testing.T) {
	locktest.Explore(t, 10, func(t *testing.T, w *locktest.World) {
		p := w.Process("a")
		locks := p.Open(&holdfast.Options{TTL: 200 * time.Millisecond})
		p.Cut()
		for range 50 {
			p.Step()
			time.Sleep(time.Second)
		}
		if l, err := locks.Lock(t.Context(), "k", holdfast.Wait(time.Minute)); err == nil {
			t.Error("the seed has mended the cut")
			unlock(t, l)
		}
		p.Mend()
		p.Pause()
		passed := false
		go func() { p.Step(); passed = true }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if passed {
			t.Error("the seed has ended the pause")
		}
		p.Resume()
		for done := 0; done < 5; {
			err := locks.Do(t.Context(), "k", func(context.Context) error {
				p.Step()
				return nil
			})
			if err == nil {
				done++
			}
		}
	})
}
