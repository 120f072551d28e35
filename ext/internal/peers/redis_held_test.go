//go:build unix

package peers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// heldSides are ours and what else renews: with notices of lost keys, as it is
// by default, and without.
var heldSides = []side{
	{name: "holdfast", open: openHoldfast},
	{name: "rueidislock", open: openRueidislock},
	{name: "rueidislock/untracked", open: func(servers ...string) (*library, error) {
		return newRueidislock(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: servers, DisableCache: true},
			KeyMajority:  1, KeyValidity: ttl, TryNextAfter: time.Second,
		})
	}},
}

// BenchmarkRedisHundredThousandHeld holds 100,000 locks for three TTLs and
// reports what that costs the client and the server. The sides come after one
// another, each with a server of its own: three minutes, whatever b.N is.
func BenchmarkRedisHundredThousandHeld(b *testing.B) {
	const n = 100_000
	t := newTable(heldSides, "lost", "B/lock", "server-B/lock", "goroutines", "client-%cpu", "server-%cpu", "%cpu")
	for _, side := range heldSides {
		s := startServer(b)
		w := startWorker(b, side, s.Addr())
		before, memory := w.do(order{Do: "measure"}).Use, s.number("used_memory")
		w.do(order{Do: "hold", N: n})
		start, began, client, server := w.do(order{Do: "measure"}).Use, time.Now(), time.Duration(0), s.cpu()
		perLock := (s.number("used_memory") - memory) / n
		<-time.After(3 * ttl)
		end := w.do(order{Do: "measure"}).Use
		client, server = end.CPU-start.CPU, s.cpu()-server
		percent := 100 / float64(time.Since(began))
		t.add(float64(w.do(order{Do: "free"}).N), float64(end.Memory-before.Memory)/n, perLock,
			float64(end.Goroutines-before.Goroutines),
			float64(client)*percent, float64(server)*percent, float64(client+server)*percent)
	}
	t.log(b)
	t.report(b, "lost", "B/lock", "goroutines", "%cpu")
	b.ReportMetric(t.least("%cpu"), "%cpu/best-peer")
	b.ReportMetric(0, "ns/op")
}

// A usage is what a process uses.
type usage struct {
	Memory     int64 // bytes of heap and of stacks
	Goroutines int
	CPU        time.Duration
}

func measure() (u usage, err error) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return usage{
		Memory:     int64(m.HeapAlloc + m.StackInuse),
		Goroutines: runtime.NumGoroutine(),
		CPU:        time.Duration(r.Utime.Nano() + r.Stime.Nano()),
	}, err
}

const holders = 256 // goroutines that lock at the same time

// hold locks n keys.
func hold(lib *library, n int) ([]func() error, error) {
	unlocks, errs := make([]func() error, n), make([]error, holders)
	var wg sync.WaitGroup
	for g := range holders {
		wg.Go(func() {
			for i := g; i < n && errs[g] == nil; i += holders {
				unlocks[i], errs[g] = lib.lock(context.Background(), fmt.Sprint("key", i))
			}
		})
	}
	wg.Wait()
	return unlocks, errors.Join(errs...)
}

// free unlocks and returns how many were lost before.
func free(unlocks []func() error) int {
	lost := make([]int, holders)
	var wg sync.WaitGroup
	for g := range holders {
		wg.Go(func() {
			for i := g; i < len(unlocks); i += holders {
				if unlocks[i]() != nil {
					lost[g]++
				}
			}
		})
	}
	wg.Wait()
	return sum(lost)
}
