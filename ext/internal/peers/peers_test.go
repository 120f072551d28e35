//go:build unix

// Package peers measures Holdfast beside what people use instead. Both sides
// take turns within one run, so that a busy machine slows both.
package peers

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moby/locker"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	_ "github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/memlock"
)

// compare runs both sides in turn, in slices of a hundredth of the work, and
// reports the time that one operation of ours takes as a ratio to theirs. What
// the first of each has to open does not count.
func compare(b *testing.B, ours, theirs func(n int)) {
	b.Helper()
	ours(1)
	theirs(1)
	b.ResetTimer()
	var spent [2]time.Duration
	slice := max(b.N/100, 1)
	for done := 0; done < b.N; done += slice {
		for i, side := range []func(int){ours, theirs} {
			start := time.Now()
			side(slice)
			spent[i] += time.Since(start)
		}
	}
	b.ReportMetric(float64(spent[0])/float64(b.N), "ours-ns/op")
	b.ReportMetric(float64(spent[1])/float64(b.N), "theirs-ns/op")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "ratio")
	b.ReportMetric(0, "ns/op")
}

func locks(b *testing.B, store driver.Store) *holdfast.Locker {
	lk := holdfast.New(store, nil)
	b.Cleanup(func() {
		if err := lk.Close(); err != nil {
			b.Error(err)
		}
	})
	return lk
}

func cycles(b *testing.B, lk *holdfast.Locker) func(n int) {
	return func(n int) {
		for range n {
			l, err := lk.Lock(context.Background(), "key")
			if err == nil {
				err = l.Unlock()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkMemoryUncontended(b *testing.B) {
	peer := locker.New()
	compare(b, cycles(b, locks(b, memlock.New())), func(n int) {
		for range n {
			peer.Lock("key")
			if err := peer.Unlock("key"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkMemoryOneKey has 64 goroutines on one key, beside the plainest lock
// that goes from hand to hand, first come first served: a channel with one
// token, whose blocked receivers Go serves in order.
func BenchmarkMemoryOneKey(b *testing.B) {
	one := cycles(b, locks(b, memlock.New()))
	token := make(chan struct{}, 1)
	token <- struct{}{}
	compare(b, spread(func() { one(1) }), spread(func() {
		<-token
		token <- struct{}{}
	}))
}

// spread does n operations in 64 goroutines.
func spread(op func()) func(n int) {
	return func(n int) {
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				for range (n + g) / 64 {
					op()
				}
			})
		}
		wg.Wait()
	}
}
func BenchmarkFileUncontended(b *testing.B) {
	store, err := driver.Open(b.Context(), "file://"+filepath.Join(b.TempDir(), "locks"))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "lock")
	compare(b, cycles(b, locks(b, store)), func(n int) {
		for range n {
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
				b.Fatal(err)
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
