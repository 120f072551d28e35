package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/bench/internal/worker"
	"github.com/holdfast-go/holdfast/internal/publish"
	"github.com/holdfast-go/holdfast/internal/rest"
)

// A holding is the cost of holding many locks for a side.
type holding struct {
	side       stores.Side
	lost       int
	memory     float64 // bytes for each lock
	goroutines int
	cpu        float64 // of one processor; may exceed 1
	cost       float64 // a second, for the server
}

// hold makes the sides that renew hold many locks for a while. The sides run one after
// another, each in a fresh process, since turns would not show the cost.
func (f *field) hold(ctx context.Context) (all []holding, err error) {
	for i, side := range f.store.Sides {
		if !side.Renews {
			continue
		}
		h, err := f.holdAs(ctx, i)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

func (f *field) holdAs(ctx context.Context, i int) (h holding, err error) {
	h.side = f.store.Sides[i]
	held := f.scale.holds(f.store)
	w, err := f.start(h.side)
	if err != nil {
		return h, err
	}
	defer func() {
		if end := w.Stop(); err == nil {
			err = end
		}
	}()
	orders := []worker.Order{{Do: worker.Measure}, {Do: worker.Hold, Locks: held}, {Do: worker.Measure}}
	var reports []worker.Report
	for _, o := range orders {
		r, err := w.Do(o)
		if err != nil {
			return h, err
		}
		reports = append(reports, r)
	}
	before, start := reports[0].Use, reports[2].Use
	began, cost := time.Now(), f.meter.start(h.side)
	if err := rest.For(ctx, f.scale.heldFor); err != nil {
		return h, err
	}
	spent := time.Since(began).Seconds()
	h.cost = cost().cost / spent
	end, err := w.Do(worker.Order{Do: worker.Measure})
	if err != nil {
		return h, err
	}
	freed, err := w.Do(worker.Order{Do: worker.Free})
	h.lost = freed.Lost
	h.memory = float64(start.Memory-before.Memory) / float64(held)
	h.goroutines = end.Use.Goroutines - before.Goroutines
	h.cpu = (end.Use.CPU - start.CPU).Seconds() / spent
	return h, err
}

// holds returns how many locks a side holds in a store.
func (s scale) holds(st stores.Store) int { return s.held * max(st.Held, 1) }

// title describes the measurement.
func (s scale) title(st stores.Store) string {
	return fmt.Sprintf("Held: %s locks for %v, with a TTL of %v, one side after another",
		publish.Thousands(s.holds(st)), s.heldFor, s.ttl)
}
