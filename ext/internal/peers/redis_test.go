//go:build unix

package peers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/redislock"
	"github.com/holdfast-go/holdfast/ext/redislock/goredis"
)

// BenchmarkRedisUncontended has one goroutine, and both sides on one client.
func BenchmarkRedisUncontended(b *testing.B) {
	b.Run("rueidis", func(b *testing.B) {
		client, err := newRueidis(startServer(b).Addr())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(client.Close)
		alternate(b, ours(locks(b, redislock.New(client, nil))), bareRueidis(client))
	})
	b.Run("go-redis", func(b *testing.B) {
		client := newGoRedis(startServer(b).Addr())
		b.Cleanup(func() { _ = client.Close() })
		alternate(b, ours(locks(b, goredis.New(client, nil))), bareGoRedis(client, pause))
	})
}

// alternate times the uncontended locks of both sides, some at a time in turn.
func alternate(b *testing.B, ours, theirs *library) {
	const rounds, some = 500, 50
	libs := []*library{ours, theirs}
	spent := make([][]time.Duration, len(libs))
	turns(rounds, len(libs), func(i int) {
		for range some {
			spent[i] = append(spent[i], cycle(b, libs[i], fmt.Sprint("alone", i)))
		}
	})
	p50 := [2]float64{float64(quantile(spent[0], 0.5)), float64(quantile(spent[1], 0.5))}
	b.ReportMetric(p50[0], "ours-p50-ns")
	b.ReportMetric(p50[1], "theirs-p50-ns")
	b.ReportMetric(p50[0]/p50[1], "ratio")
	b.ReportMetric(0, "ns/op")
}

// cycle locks and unlocks once.
func cycle(b *testing.B, lib *library, key string) time.Duration {
	start := time.Now()
	unlock, err := lib.lock(b.Context(), key)
	if err == nil {
		err = unlock()
	}
	if err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func BenchmarkRedisManyKeys64(b *testing.B)   { manyKeys(b, 64) }
func BenchmarkRedisManyKeys1000(b *testing.B) { manyKeys(b, 1000) }

// manyKeys has n goroutines, each with a key of its own. What is written by hand
// counts apart: it is what a lock costs without renewal, tokens and waiting.
func manyKeys(b *testing.B, n int) {
	const rounds, each = 10, 300 * time.Millisecond
	t := tabulate(sides, crowds(b, n, rounds, each, func(g int) string { return fmt.Sprint("key", g) }), rounds*each)
	t.log(b)
	t.report(b, "locks/s")
	byHand := func(s side) bool { return strings.HasPrefix(s.name, "bare/") }
	b.ReportMetric(t.without(byHand).most("locks/s"), "x-best-peer")
	b.ReportMetric(t.most("locks/s"), "x-by-hand")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRedisOneKey64 has 64 goroutines of one process on one key.
func BenchmarkRedisOneKey64(b *testing.B) {
	const rounds, each = 5, time.Second
	t := tabulate(sides, crowds(b, 64, rounds, each, func(int) string { return "key" }), rounds*each)
	t.log(b)
	t.report(b, "locks/s", "min/max")
	b.ReportMetric(t.most("locks/s"), "x-best-peer")
	b.ReportMetric(0, "ns/op")
}

// crowds lets n goroutines of this process lock, side by side.
func crowds(b *testing.B, n, rounds int, each time.Duration, key func(g int) string) []tally {
	b.Helper()
	libs := openAll(b, sides, startServer(b).Addr())
	run := func(i int, d time.Duration) tally {
		named := func(g int) string { return sides[i].name + key(g) }
		y, err := crowd(libs[i], named, n, d)
		if err != nil {
			b.Fatalf("%s: %v", sides[i].name, err)
		}
		return y
	}
	tallies := make([]tally, len(sides))
	turns(1, len(sides), func(i int) { run(i, each/4) }) // connect, and load the scripts
	turns(rounds, len(sides), func(i int) { tallies[i].add(run(i, each)) })
	return tallies
}

// tabulate shows what each side has got in so long.
func tabulate(sides []side, tallies []tally, d time.Duration) *table {
	t := newTable(sides, "locks/s", "min/max", "p50-us", "p99-us", "hung")
	for _, y := range tallies {
		t.add(float64(sum(y.Counts))/d.Seconds(), y.fairness(),
			micros(quantile(y.Waits, 0.5)), micros(quantile(y.Waits, 0.99)), float64(y.Hung))
	}
	return t
}

func openAll(b *testing.B, sides []side, servers ...string) (libs []*library) {
	b.Helper()
	for _, side := range sides {
		lib, err := side.open(servers...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(lib.close)
		libs = append(libs, lib)
	}
	return libs
}
