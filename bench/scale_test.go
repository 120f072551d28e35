package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
)

// TestRoundsOfSlowSides wants 25 locks for each of 32 goroutines, that is 800.
func TestRoundsOfSlowSides(t *testing.T) {
	b := bench{processes: 4, goroutines: 8}
	for _, test := range []struct {
		locks  int
		within time.Duration
		want   time.Duration
	}{
		{40_000, 100 * time.Millisecond, 300 * time.Millisecond},
		{80, 100 * time.Millisecond, time.Second},
		{1, 100 * time.Millisecond, 2500 * time.Millisecond},
		{0, time.Second, 2500 * time.Millisecond},
	} {
		if got := full.of(b, test.locks, test.within).each; got != test.want {
			t.Errorf("%d locks within %v: rounds of %v, want %v", test.locks, test.within, got, test.want)
		}
	}
	if got := full.of(bench{processes: 4, goroutines: 1, long: true}, 10_000, 100*time.Millisecond).each; got != 3*time.Second {
		t.Errorf("long rounds of %v", got)
	}
	alone := bench{processes: 1, goroutines: 1, timed: true}
	if got := full.of(alone, 1, time.Second).each; got != 200*time.Millisecond {
		t.Errorf("rounds of %v alone", got)
	}
}

// TestFairness has rounds in which a goroutine is lucky, but each time another.
func TestFairness(t *testing.T) {
	b := bench{processes: 1, goroutines: 2}
	var r result
	for i := range 4 {
		counts := []int{10, 10}
		counts[i%2] = 40
		r.add(b, worker.Tally{Counts: counts}, usage{}, full)
	}
	if got := r.fairness(); got != 0.25 {
		t.Errorf("fairness = %v, want 0.25", got)
	}
	for range 5 {
		r.add(b, worker.Tally{Counts: []int{20, 19}}, usage{}, full) // too few to tell
	}
	if got := r.fairness(); !math.IsNaN(got) {
		t.Errorf("fairness of less than half of the rounds = %v", got)
	}
}

func TestMeter(t *testing.T) {
	n := 0
	count := func(stores.Side) int { n += 3; return n } // it counts itself
	side := stores.Side{}
	m := newMeter(count, side, time.Millisecond)
	if m.own != 3 || m.idle != 0 {
		t.Errorf("reading costs %d, and idling %v a second; want 3 and 0", m.own, m.idle)
	}
	stop := m.start(side)
	n += 40
	if got := stop().cost; got != 40 {
		t.Errorf("locks have cost %v, want 40", got)
	}
	m.idle = 10
	if got := m.cost(100, 203, 5*time.Second); got != 50 {
		t.Errorf("the cost of 100 in 5 seconds, of which 10 a second are idle = %v, want 50", got)
	}
	if got := m.cost(100, 110, 5*time.Second); got != 0 {
		t.Errorf("less than what idling costs = %v, want 0", got)
	}
	if got := newMeter(nil, side, time.Hour).start(side)().cost; got != 0 {
		t.Errorf("what nothing counts has cost %v", got)
	}
}

// TestTurns wants every side once a round, and no neighbours for ever.
func TestTurns(t *testing.T) {
	order := func(seed uint64) (all []int) {
		run := func(i int) error { all = append(all, i); return nil }
		if err := turns(context.Background(), rand.New(rand.NewPCG(seed, 0)), 20, 5, run); err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := order(7)
	after := map[int]bool{}
	for round := range slices.Chunk(all, 5) {
		for i := range 5 {
			if !slices.Contains(round, i) {
				t.Errorf("a round without %d: %v", i, round)
			}
		}
		if at := slices.Index(round, 0); at > 0 {
			after[round[at-1]] = true
		}
	}
	if len(after) != 4 {
		t.Errorf("0 comes only after %v", after)
	}
	if !slices.Equal(all, order(7)) {
		t.Error("the same seed gives another order")
	}
}
