//go:build unix

package peers

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/memlock"
)

// BenchmarkHundredThousandHeld holds 100,000 locks for two TTLs and reports what
// that costs. It takes half a minute, whatever b.N is.
func BenchmarkHundredThousandHeld(b *testing.B) {
	const n, ttl = 100_000, 15 * time.Second
	store := &counted{Store: memlock.New()}
	keys, held := make([]string, n), make([]*holdfast.Lock, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	before, goroutines := memory(), runtime.NumGoroutine()
	lk := holdfast.New(store, &holdfast.Options{TTL: ttl})
	for i, key := range keys {
		l, err := lk.Lock(b.Context(), key)
		if err != nil {
			b.Fatal(err)
		}
		held[i] = l
	}
	b.ReportMetric(float64(memory()-before)/n, "B/lock")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
	start, spent := time.Now(), cpu(b)
	<-time.After(2 * ttl)
	b.ReportMetric(100*float64(cpu(b)-spent)/float64(time.Since(start)), "%cpu")
	b.ReportMetric(float64(store.claims)/float64(store.calls), "claims/call")
	b.ReportMetric(float64(store.largest), "most/call")
	b.ReportMetric(0, "ns/op")
	for _, l := range held {
		if err := l.Err(); err != nil {
			b.Fatal(err)
		}
	}
	if err := lk.Close(); err != nil {
		b.Fatal(err)
	}
}

// counted counts renewals.
type counted struct {
	*memlock.Store
	mu                     sync.Mutex
	calls, claims, largest int
}

func (c *counted) Renew(ctx context.Context, cs []driver.Claim) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.claims += len(cs)
	c.largest = max(c.largest, len(cs))
	return c.Store.Renew(ctx, cs)
}

func memory() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
