package memlock

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func BenchmarkUncontended(b *testing.B) {
	ctx := b.Context()
	for _, keys := range []int{1, 1000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			s := New()
			claims := make([]driver.Claim, keys)
			for i := range claims {
				claims[i] = writer(fmt.Sprintf("key/%d", i), fmt.Sprintf("0123456789abcdef%06d", i))
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c := claims[i : i+1]
				if g, err := s.Acquire(ctx, c[0]); !g.OK || err != nil {
					b.Fatal(g, err)
				}
				if errs := s.Release(ctx, c); errs != nil {
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
			c := []driver.Claim{writer("key", fmt.Sprint(i))}
			granted := make(chan driver.Grant, 1)
			stop, err := s.Watch(ctx, c[0], func(g driver.Grant) {
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
				g, err := s.Acquire(ctx, c[0])
				if err != nil {
					b.Error(err)
					return
				}
				if !g.OK {
					<-granted
				}
				if errs := s.Release(ctx, c); errs != nil {
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
	claims := make([]driver.Claim, held)
	for i := range claims {
		claims[i] = writer(fmt.Sprintf("key/%d", i), fmt.Sprintf("0123456789abcdef%06d", i))
	}
	s := New()
	before := heap()
	for _, c := range claims {
		if g, err := s.Acquire(ctx, c); !g.OK || err != nil {
			b.Fatal(g, err)
		}
	}
	size := float64(heap()-before) / held
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if errs := s.Renew(ctx, claims[i:i+batch]); errs != nil {
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

func writer(key, id string) driver.Claim {
	return driver.Claim{
		Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight,
		TTL: 15 * time.Second, Wait: true, Span: 1, Owner: "somebody@host:1",
	}
}
