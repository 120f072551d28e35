package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
	"github.com/holdfast-go/holdfast/ext/bench/internal/worker"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A field is a store that runs, with processes of all its sides.
type field struct {
	store   stores.Store
	server  *stores.Server
	scale   scale
	workers [][]*worker.Worker // of each side
}

// open starts the server of a store, and as many processes of each side as the
// benches need.
func open(tb servers.TB, st stores.Store, s scale, processes int) (f *field, err error) {
	f = &field{store: st, server: st.Start(tb, s.ttl), scale: s, workers: make([][]*worker.Worker, len(st.Sides))}
	for i, side := range st.Sides {
		for range processes {
			w, err := f.start(side)
			if err != nil {
				return nil, errors.Join(err, f.close())
			}
			f.workers[i] = append(f.workers[i], w)
		}
	}
	if f.server.Fail == nil {
		return f, nil
	}
	if err := f.warm(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	f.server.Fail()
	return f, nil
}

func (f *field) start(side stores.Side) (*worker.Worker, error) {
	return worker.Start(worker.Task{Store: f.store.Name, Side: side.Name, At: f.server.At, TTL: f.scale.ttl})
}

// close ends all processes at the same time, because each takes a while.
func (f *field) close() error {
	all := slices.Concat(f.workers...)
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() { errs[i] = w.Stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// warm lets clients connect, and change their ways, as some do once many have used
// them.
func (f *field) warm() error {
	b := bench{goroutines: 64, ownKeys: true}
	s := f.scale
	s.each = min(s.each, 100*time.Millisecond)
	for i := range f.workers {
		if _, err := crowd(b, f.workers[i], "warm", s); err != nil {
			return err
		}
	}
	return nil
}

// run lets all sides take turns. What the first turn of each has to open does not
// count.
func (f *field) run(ctx context.Context, b bench) ([]result, error) {
	results := make([]result, len(f.workers))
	turn := func(i int, s scale) (worker.Tally, error) {
		return b.turn(b, f.workers[i][:b.processes], fmt.Sprint(b.name, "-", i), s)
	}
	first := f.scale
	first.each, first.handOffs = first.each/4, max(first.handOffs/4, 1)
	err := turns(ctx, 1, len(f.workers), func(i int) error {
		results[i].side = f.store.Sides[i]
		_, err := turn(i, first)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = turns(ctx, f.scale.rounds, len(f.workers), func(i int) error {
		before := f.count(i)
		t, err := turn(i, f.scale)
		if err == nil {
			results[i].add(b, t, f.count(i)-before, f.scale)
		}
		return err
	})
	return results, err
}

// count returns what a side has cost the server so far.
func (f *field) count(i int) int {
	if f.server.Count == nil {
		return 0
	}
	return f.server.Count(f.store.Sides[i])
}

// turns lets each of n run once a round, until ctx ends. Another begins each round,
// so that none always comes after the same one.
func turns(ctx context.Context, rounds, n int, run func(i int) error) error {
	for round := range rounds {
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := run((round + i) % n); err != nil {
				return err
			}
		}
	}
	return nil
}
