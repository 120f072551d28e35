package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
)

// An Engine acquires holds in one store.
type Engine struct {
	core
	renewer *renewer
	ignore  func() // ends the store's loss reports
}

// New returns an engine. New does no I/O.
func New(config Config) *Engine {
	e := &Engine{core: core{
		Config:  config,
		clock:   boottime.New(),
		closing: make(chan struct{}),
		kick:    make(chan struct{}, 1),
		guarded: newTable(),
	}}
	if s, ok := config.Store.(boottime.Simulator); ok {
		e.clock = s.Clock()
	}
	e.renewer = newRenewer(&e.core)
	e.startRenewer = func() { go e.renewer.run() }
	e.watcher, _ = config.Store.(driver.Watcher)
	if l, ok := config.Store.(driver.Local); ok {
		e.local = l.Local() == config.Store
	}
	if n, ok := config.Store.(driver.Notifier); ok {
		e.ignore = n.Notify(e.lost)
	}
	return e
}

// Lock acquires what is requested, or returns why it cannot.
func (e *Engine) Lock(ctx context.Context, r *Request) (*Hold, error) {
	c := call{core: &e.core, Request: *r, ctx: ctx, answeredAt: never}
	return c.run()
}

// Upgrade acquires what is left of the key beside a reader, or returns why it cannot. A try
// does not wait.
func (e *Engine) Upgrade(ctx context.Context, reader *Hold, try bool) (*Hold, error) {
	over, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	reader.Attach(&Bond{Context: over, Cancel: cancel})
	claim := reader.lease.claim()
	c := call{core: &e.core, ctx: ctx, answeredAt: never, reader: reader, over: over.Done()}
	c.Key, c.Limited = claim.Key, try
	c.Terms = Terms{
		Weight: driver.MaxWeight - claim.Weight, Limit: driver.MaxWeight,
		TTL: claim.TTL, NoRenew: reader.lease.noRenew, Note: claim.Note,
	}
	return c.run()
}

// Closed reports whether Close was called.
func (e *Engine) Closed() bool {
	defer e.unlock()
	return e.lock().closed
}

// A Size is what an engine keeps. An idle engine keeps nothing.
type Size struct {
	Turns, Leases, Leftovers int
	Early                    int // losses reported before the grant
}

// Size counts what the engine keeps.
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
		forsake(&e.core, l)
	}
	err := e.unlockAll(holds)
	e.busy.Wait()
	e.renewer.stop()
	if e.ignore != nil {
		e.ignore()
	}
	return errors.Join(err, e.Store.Close())
}
