package holdfast

import (
	"context"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

func BenchmarkUncontended(b *testing.B) {
	lk := must.Get(New(memlock.New(), nil))
	defer lk.Close()
	b.ReportAllocs()
	for b.Loop() {
		cycle(b, lk, "key")
	}
}

func cycle(b *testing.B, lk *Locker, key string) {
	l, err := lk.Lock(b.Context(), key)
	if err == nil {
		err = l.Unlock()
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOneKey reports the fairness among 64 goroutines as min/max: the
// fewest locks that one of them got, divided by the most.
func BenchmarkOneKey(b *testing.B) {
	lk := must.Get(New(memlock.New(), nil))
	defer lk.Close()
	b.ReportAllocs()
	got := make([]int, 64)
	left := b.N
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			for {
				l, err := lk.Lock(context.Background(), "key")
				if err != nil {
					b.Error(err)
					return
				}
				left-- // guarded by the lock
				done := left < 0
				if err := l.Unlock(); err != nil || done {
					return
				}
				got[i]++
			}
		})
	}
	wg.Wait()
	low, high := b.N, 0
	for _, n := range got {
		low, high = min(low, n), max(high, n)
	}
	b.ReportMetric(float64(low)/float64(max(high, 1)), "min/max")
}
