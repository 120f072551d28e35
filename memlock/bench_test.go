package memlock

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
)

func BenchmarkUncontended(b *testing.B) {
	ctx := b.Context()
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			s := New()
			claims := writers(keys)
			ends := asks.Releases(claims...)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if g, err := s.Acquire(ctx, claims[i]); !g.OK || err != nil {
					b.Fatal(g, err)
				}
				if errs := s.Release(ctx, ends[i:i+1]); errs != nil {
					b.Fatal(errs)
				}
				if i++; i == keys {
					i = 0
				}
			}
		})
	}
}

// BenchmarkHandOff passes one key round a line of waiters; each operation is
// one grant.
func BenchmarkHandOff(b *testing.B) {
	ctx := b.Context()
	const waiters = 64
	b.ReportAllocs()
	s := New()
	var group sync.WaitGroup
	left := make(chan struct{}, b.N)
	for range b.N {
		left <- struct{}{}
	}
	close(left)
	b.ResetTimer()
	for i := range waiters {
		group.Go(func() {
			c := writer("key", fmt.Sprint(i))
			end := asks.Releases(c)
			granted := make(chan driver.Grant, 1)
			stop, err := s.Watch(ctx, c.Claim, func(g driver.Grant) {
				if g.OK {
					granted <- g
				}
			})
			if err != nil {
				b.Error(err)
				return
			}
			defer stop()
			for range left {
				g, err := s.Acquire(ctx, c)
				if err != nil {
					b.Error(err)
					return
				}
				if !g.OK {
					<-granted
				}
				if errs := s.Release(ctx, end); errs != nil {
					b.Error(errs)
					return
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkHeld renews 100,000 claims in batches of 500; each operation is one
// batch.
func BenchmarkHeld(b *testing.B) {
	ctx := b.Context()
	const held, batch = 100_000, 500
	claims := writers(held)
	s := New()
	before := heap()
	for _, c := range claims {
		if g, err := s.Acquire(ctx, c); !g.OK || err != nil {
			b.Fatal(g, err)
		}
	}
	size := float64(heap()-before) / held
	renewals := asks.Renewals(claims...)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if errs := s.Renew(ctx, renewals[i:i+batch]); errs != nil {
			b.Fatal(errs)
		}
		i = (i + batch) % held
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/batch, "ns/claim")
	b.ReportMetric(size, "B/claim")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func writer(key, id string) driver.Ask {
	return driver.Ask{Wait: true, Span: 1, Claim: driver.Claim{
		Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight,
		TTL: 15 * time.Second, Owner: "somebody@host:1",
	}}
}

// writers are claims on n keys.
func writers(n int) (cs []driver.Ask) {
	for i := range n {
		cs = append(cs, writer(fmt.Sprintf("key/%d", i), fmt.Sprintf("0123456789abcdef%06d", i)))
	}
	return cs
}
