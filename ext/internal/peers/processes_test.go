//go:build unix

package peers

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkRedisOneKeyProcesses has four processes of eight goroutines on one
// key.
func BenchmarkRedisOneKeyProcesses(b *testing.B) {
	s := startServer(b)
	t := oneKey(b, sides, s.Addr(), "commands/lock", func(i int) int { return s.commands(sides[i].sends) })
	b.ReportMetric(t.most("locks/s"), "x-best-peer")
	b.ReportMetric(t.least("p99-us"), "p99/best-peer")
}

// oneKey has four processes of eight goroutines of each side on one key. count
// counts what a side has cost the server so far.
func oneKey(b *testing.B, sides []side, server, cost string, count func(i int) int) *table {
	const processes, goroutines, rounds, each = 4, 8, 5, time.Second
	workers := make([][]*worker, len(sides))
	for i, side := range sides {
		for range processes {
			workers[i] = append(workers[i], startWorker(b, side, server))
		}
	}
	run := func(i int, d time.Duration) (y tally) {
		for _, w := range workers[i] {
			w.order(order{Do: "crowd", Key: sides[i].name, N: goroutines, For: d})
		}
		for _, w := range workers[i] {
			y.join(w.report().Tally)
		}
		return y
	}
	tallies, costs := make([]tally, len(sides)), make([]int, len(sides))
	turns(1, len(sides), func(i int) { run(i, each/4) })
	turns(rounds, len(sides), func(i int) {
		before := count(i)
		tallies[i].add(run(i, each))
		costs[i] += count(i) - before
	})
	t := tabulate(sides, tallies, rounds*each)
	t.names = append(t.names, cost)
	for i, y := range tallies {
		t.rows[i] = append(t.rows[i], float64(costs[i])/float64(len(y.Waits)))
	}
	t.log(b)
	t.report(b, "locks/s", "min/max", "p99-us", cost)
	b.ReportMetric(0, "ns/op")
	return t
}

// BenchmarkRedisHandOff compares how soon the next has the lock.
func BenchmarkRedisHandOff(b *testing.B) {
	t := handOff(b, sides, startServer(b).Addr())
	b.ReportMetric(t.least("p50-us"), "p50/best-peer")
}

// handOff measures from before the unlock in one process to holding in another
// that has waited for a while.
func handOff(b *testing.B, sides []side, server string) *table {
	const rounds, some = 10, 50
	pairs := make([][2]*worker, len(sides))
	for i, side := range sides {
		pairs[i] = [2]*worker{startWorker(b, side, server), startWorker(b, side, server)}
	}
	spent, hung := make([][]time.Duration, len(sides)), make([]int, len(sides))
	turns(rounds, len(sides), func(i int) {
		from, to := pairs[i][0], pairs[i][1]
		hold, free := order{Do: "lock", Key: sides[i].name}, order{Do: "unlock"}
		from.do(hold)
		for range some {
			to.order(hold)
			<-time.After(3*time.Millisecond + rand.N(2*time.Millisecond)) // it waits, at some point between two tries
			began := from.do(free).At
			held := to.report()
			spent[i] = append(spent[i], held.At.Sub(began))
			hung[i] += held.N
			from, to = to, from
		}
		from.do(free)
	})
	t := newTable(sides, "p50-us", "p99-us", "max-us", "hung")
	for i, d := range spent {
		t.add(micros(quantile(d, 0.5)), micros(quantile(d, 0.99)), micros(quantile(d, 1)), float64(hung[i]))
	}
	t.log(b)
	t.report(b, "p50-us", "p99-us")
	b.ReportMetric(0, "ns/op")
	return t
}
