package sqlitelock_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

var settings = []string{"normal", "full"}

// BenchmarkPair locks and unlocks a key that nobody else wants.
func BenchmarkPair(b *testing.B) {
	for _, synchronous := range settings {
		b.Run(synchronous, func(b *testing.B) {
			lk, err := holdfast.Open(b.Context(), url(b)+"?synchronous="+synchronous, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer lk.Close()
			for b.Loop() {
				l, err := lk.Lock(b.Context(), "key")
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Unlock(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
		})
	}
}

// BenchmarkProcesses has four processes on a key each, and on one key with four
// goroutines each.
func BenchmarkProcesses(b *testing.B) {
	const d = 3 * time.Second
	for _, synchronous := range settings {
		for _, shared := range []bool{false, true} {
			name := synchronous + "/own"
			if shared {
				name = synchronous + "/shared"
			}
			b.Run(name, func(b *testing.B) {
				workers := hireAll(b, 4, url(b)+"?synchronous="+synchronous, 15*time.Second)
				each := make([]int, len(workers))
				for range b.N {
					for i, w := range workers {
						o := order{Do: "count", Keys: []string{"key"}, Goroutines: 4, For: d}
						if !shared {
							o.Keys, o.Goroutines = []string{string(rune('a' + i))}, 1
						}
						w.order(o)
					}
					for i, w := range workers {
						each[i] += w.report().Locks
					}
				}
				sum := 0
				for _, n := range each {
					sum += n
				}
				b.ReportMetric(float64(sum)/d.Seconds()/float64(b.N), "locks/s")
				b.ReportMetric(float64(slices.Min(each))/float64(slices.Max(each)), "min/max")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkHandOff measures from before the unlock in one process to holding in
// another that has waited for a while.
func BenchmarkHandOff(b *testing.B) {
	for _, synchronous := range settings {
		b.Run(synchronous, func(b *testing.B) {
			workers := hireAll(b, 2, url(b)+"?synchronous="+synchronous, 15*time.Second)
			from, to := workers[0], workers[1]
			from.do(lock("key"))
			var spent []time.Duration
			for range 300 {
				to.order(lock("key"))
				<-time.After(3*time.Millisecond + rand.N(2*time.Millisecond))
				began := from.do(unlock("key")).At
				spent = append(spent, to.report().At.Sub(began))
				from, to = to, from
			}
			slices.Sort(spent)
			b.ReportMetric(float64(spent[len(spent)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(spent[len(spent)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(spent[len(spent)-1].Microseconds()), "max-us")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func url(b *testing.B) string { return "sqlite://" + filepath.Join(b.TempDir(), "locks.db") }
