package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A field is a running store, with processes of all sides.
type field struct {
	store   stores.Store
	server  *stores.Server
	scale   scale
	order   *rand.Rand
	meter   meter
	workers [][]*worker.Worker // by side
}

// open starts the server of a store, and as many processes of each side as the benches
// need. The seed decides the order in which sides take turns.
func open(tb servers.TB, st stores.Store, s scale, processes int, seed uint64) (f *field, err error) {
	f = &field{
		store: st, server: st.Start(tb, s.ttl), scale: s, order: rand.New(rand.NewPCG(seed, 0)),
		workers: make([][]*worker.Worker, len(st.Sides)),
	}
	for i, side := range st.Sides {
		for range processes {
			w, err := f.start(side)
			if err != nil {
				return nil, errors.Join(err, f.close())
			}
			f.workers[i] = append(f.workers[i], w)
		}
	}
	if err := f.warm(); err != nil {
		return nil, errors.Join(err, f.close())
	}
	if f.server.Fail != nil {
		f.server.Fail()
	}
	f.meter = newMeter(f.server.Count, st.Sides[0], s.idle)
	for _, w := range slices.Concat(f.workers...) {
		f.meter.workers = append(f.meter.workers, w.Pid())
	}
	return f, nil
}

func (f *field) start(side stores.Side) (*worker.Worker, error) {
	return worker.Start(worker.Task{Store: f.store.Name, Side: side.Name, At: f.server.At, TTL: f.scale.ttl})
}

// close ends the processes at the same time, because a process takes a while to end.
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

// warm lets clients connect. Some clients also change their behaviour after many
// goroutines have used them.
func (f *field) warm() error {
	s := f.scale
	s.each = min(s.each, 100*time.Millisecond)
	for _, ws := range f.workers {
		b := bench{goroutines: s.warm / len(ws), ownKeys: true} // a server accepts a limited number of connections
		if _, err := crowd(b, ws, "warm", s); err != nil {
			return err
		}
	}
	return nil
}

// run makes the sides that differ in a bench take turns. The first turn of each side does
// not count: the first turn opens connections, and shows how long a turn has to be.
func (f *field) run(ctx context.Context, b bench) ([]result, error) {
	var sides []int
	for i, side := range f.store.Sides {
		if b.measures(side) {
			sides = append(sides, i)
		}
	}
	results, scales := make([]result, len(sides)), make([]scale, len(sides))
	turn := func(n int, s scale) (t worker.Tally, u usage, err error) {
		i := sides[n]
		ws := f.workers[i][:b.processes]
		if err := b.gather(ws); err != nil {
			return t, u, err
		}
		stop := f.meter.start(f.store.Sides[i])
		t, err = b.turn(b, ws, fmt.Sprint(b.name, "-", i, "-"), s)
		u = stop()
		return t, u, errors.Join(err, b.scatter(ws))
	}
	err := turns(ctx, f.order, 1, len(sides), func(n int) error {
		t, u, err := turn(n, f.scale.first())
		results[n].side = f.store.Sides[sides[n]]
		scales[n] = f.scale.of(b, t.Had, u.took)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = turns(ctx, f.order, f.scale.times(b), len(sides), func(n int) error {
		t, u, err := turn(n, scales[n])
		if err == nil {
			results[n].add(b, t, u, scales[n])
		}
		return err
	})
	return results, err
}

// turns calls run for each i below n once a round, in a new order each round, until ctx
// ends. So no side always follows the same side.
func turns(ctx context.Context, order *rand.Rand, rounds, n int, run func(i int) error) error {
	for range rounds {
		for _, i := range order.Perm(n) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := run(i); err != nil {
				return err
			}
		}
	}
	return nil
}
