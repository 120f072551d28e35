package exact_test

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/sim/exact"
)

var seeds = flag.Uint64("seeds", 2, "run this many `seeds`")

// TestToy is a bubble whose trace depends on everything that Go leaves open: which
// goroutine runs first, which case of a select is taken, which entry of a map and which
// child of a context comes first, and random numbers.
func TestToy(t *testing.T) {
	for seed := range *seeds {
		exact.Seed(t, seed)
		synctest.Test(t, func(t *testing.T) {
			trace := toy(t.Context())
			sum := fnv.New64a()
			sum.Write([]byte(trace))
			fmt.Printf("seed %d: %d lines, %x\n", seed, strings.Count(trace, "\n"), sum.Sum64())
		})
	}
}

func toy(ctx context.Context) string {
	var (
		mu    sync.Mutex
		trace strings.Builder
		left  = make(map[int]bool)
		a, b  = make(chan int, 1), make(chan int, 1)
		group sync.WaitGroup
	)
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&trace, format+"\n", args...)
	}
	for i := range 12 {
		left[i] = true
		group.Go(func() {
			for range 200 {
				select {
				case a <- i:
					note("%d to a", i)
				case b <- i:
					note("%d to b", i)
				case n := <-a:
					note("%d has %d of a", i, n)
				case n := <-b:
					note("%d has %d of b", i, n)
				}
				if rand.N(4) == 0 {
					ctx, cancel := context.WithTimeout(ctx, rand.N(10*time.Millisecond))
					<-ctx.Done()
					cancel()
				}
			}
		})
	}
	group.Wait()
	for i := range left {
		note("left %d", i)
	}
	parent, cancel := context.WithCancel(ctx)
	for i := range 12 {
		child, cancel := context.WithCancel(parent)
		defer cancel()
		group.Add(1)
		context.AfterFunc(child, func() {
			defer group.Done()
			note("canceled %d", i)
		})
	}
	cancel()
	group.Wait()
	return trace.String()
}
