package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// An Engine acquires holds in one store.
type Engine struct {
	core
	ignore func() // ends the store's loss reports
}

// New returns an engine. New does no I/O.
func New(config Config) *Engine {
	e := &Engine{core: core{
		Config:  config,
		clock:   boottime.New(),
		closing: make(chan struct{}),
		sooner:  make(chan struct{}, 1),
		rounds:  make(chan struct{}, maxRounds),
		guarded: newTable(),
	}}
	if s, ok := config.Store.(boottime.Simulator); ok {
		e.clock = s.Clock()
	}
	e.watcher, _ = config.Store.(driver.Watcher)
	if l, ok := config.Store.(driver.Local); ok {
		e.local = l.Local() == config.Store
	}
	if n, ok := config.Store.(driver.Notifier); ok {
		e.ignore = n.Notify(e.lost)
	}
	return e
}

// Lock acquires a hold as requested, or returns the reason why not.
func (e *Engine) Lock(ctx context.Context, r *Request) (*Hold, error) {
	c := call{attempt: attempt{core: &e.core, Request: *r, ctx: ctx, answeredAt: never}}
	return c.run()
}

// Upgrade acquires the rest of the key beside a reader, or returns the reason why not. A try
// does not wait.
func (e *Engine) Upgrade(ctx context.Context, reader *Hold, try bool) (*Hold, error) {
	claim := reader.lease.claim()
	c := call{attempt: attempt{core: &e.core, ctx: ctx, answeredAt: never, reader: reader}}
	c.Key, c.Limited = claim.Key, try
	c.Terms = reader.lease.terms()
	c.Weight = driver.MaxWeight - claim.Weight
	return c.run()
}

// Closed reports whether Close was called.
func (e *Engine) Closed() bool {
	defer e.unlock()
	return e.lock().closed
}

// A Size counts the state of an engine. An idle engine has no state.
type Size struct {
	Turns, Leases, Leftovers int
	Early                    int // losses reported before the grant
}

// Size counts the state of the engine.
func (e *Engine) Size() Size {
	t := e.lock()
	defer e.unlock()
	s := Size{Turns: len(t.turns), Leases: len(t.agenda.leases), Leftovers: len(t.leftovers)}
	for _, turn := range t.turns {
		s.Early += len(turn.early)
	}
	return s
}

// Now is the time since the engine was made.
func (e *Engine) Now() time.Duration { return e.now() }

// lost receives a loss from the store.
func (e *Engine) lost(key, id string, err error) {
	var h *Hold
	if turn := e.lock().turns[key]; turn != nil {
		h = turn.noteLoss(id, err)
	}
	e.unlock()
	if h != nil {
		h.lose(lossOf(err))
	}
}

// Close ends all waits with ErrClosed, ends every hold, and closes the store. A second
// Close returns nil.
func (e *Engine) Close() error {
	t := e.lock()
	holds, dropped, parked, ok := t.close()
	for _, l := range parked {
		cleaner{&e.core}.add(t, l.release[0])
		t.drop(l)
		close(l.released)
	}
	e.unlock()
	if !ok {
		return nil
	}
	close(e.closing)
	for _, l := range dropped {
		loseDropped(&e.core, l)
	}
	err := e.unlockAll(holds)
	e.busy.Wait()
	if e.ignore != nil {
		e.ignore()
	}
	return errors.Join(err, e.Store.Close())
}

// unlockAll ends the holds of an engine that closes.
func (e *Engine) unlockAll(holds []*Hold) error {
	began := time.Now()
	var leaving []driver.Renewal
	var going []driver.Release
	holds = slices.DeleteFunc(holds, func(h *Hold) bool {
		h.check() // A suspend may have ended it just now.
		return !h.finish(&ending{ErrClosed})
	})
	for _, h := range holds {
		h.awaitRound()
		if last, leave := h.lastRenewal(time.Now()); leave {
			leaving = append(leaving, last)
		} else {
			going = append(going, h.lease.release[0])
		}
	}
	left, errLeft := endAll(leaving, e.Store.Renew)
	kept, err := endAll(going, e.Store.Release)
	err = silence.Of(cmp.Or(err, errLeft), time.Since(began))
	failed := make(map[string]bool, len(left)+len(kept)) // by id
	for _, r := range left {
		failed[r.ID] = true
	}
	t := e.lock()
	for _, r := range kept {
		failed[r.ID] = true
		cleaner{&e.core}.add(t, r)
	}
	t.until = e.now() + closingGrace
	e.unlock()
	for _, h := range holds {
		event := h.event(e.now())
		if failed[h.ID()] {
			event.Err = err
		}
		emit(e.Hooks.Unlocked, event)
	}
	if len(failed) > 0 {
		return fmt.Errorf("holdfast: close: %d of %d locks not released, they end with their TTL: %w",
			len(failed), len(holds), err)
	}
	return nil
}

// endAll ends claims, one call per batch, and returns the claims of unknown fate. endAll stops
// after a batch without an answer: a store that hangs does so only once.
func endAll[T any](all []T, call func(context.Context, []T) []error) (failed []T, last error) {
	for len(all) > 0 {
		batch := all[:min(len(all), MaxBatch)]
		all = all[len(batch):]
		unknown := 0
		for i, err := range shortly(batch, call) {
			if err != nil && !errors.Is(err, driver.ErrLost) {
				failed, last = append(failed, batch[i]), err
				unknown++
			}
		}
		if unknown == len(batch) {
			return append(failed, all...), last
		}
	}
	return failed, last
}
