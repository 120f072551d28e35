package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// An Engine acquires holds in one store. Calls on keys of different cores do not wait for each
// other.
type Engine struct {
	config  Config
	clock   *boottime.Clock
	closed  atomic.Bool   // set by Close, before the cores close one after the other
	closing chan struct{} // closed by Close after that
	ignore  func()        // ends the store's loss reports
	cores   []*core       // a key belongs to one of them
	seed    maphash.Seed  // of the hash that chooses the core of a key
}

// manyCores is how many cores the engine of a local store has. With one mutex, calls would spend
// more time on the mutex than in such a store. With other stores the engine has one core, so that one
// call renews the claims of all keys.
const manyCores = 16

// New returns an engine. New does no I/O.
func New(config Config) *Engine {
	e := &Engine{config: config, clock: boottime.New(), closing: make(chan struct{}), seed: maphash.MakeSeed()}
	if s, ok := config.Store.(boottime.Simulator); ok {
		e.clock = s.Clock()
	}
	watcher, _ := config.Store.(driver.Watcher)
	l, local := config.Store.(driver.Local)
	local = local && l.Local() == config.Store
	cores := 1
	if local {
		cores = manyCores
	}
	for range cores {
		e.cores = append(e.cores, &core{
			Config:  config,
			watcher: watcher,
			local:   local,
			clock:   e.clock,
			closed:  &e.closed,
			closing: e.closing,
			sooner:  make(chan struct{}, 1),
			rounds:  make(chan struct{}, maxRounds),
			guarded: newTable(),
		})
	}
	if n, ok := config.Store.(driver.Notifier); ok {
		e.ignore = n.Notify(e.lost)
	}
	return e
}

// of returns the core of a key.
func (e *Engine) of(key string) *core {
	if len(e.cores) == 1 {
		return e.cores[0]
	}
	return e.cores[maphash.String(e.seed, key)%uint64(len(e.cores))]
}

// Lock acquires a hold as requested, or returns the reason why not.
func (e *Engine) Lock(ctx context.Context, r *Request) (*Hold, error) {
	c := call{attempt: attempt{core: e.of(r.Key), Request: *r, ctx: ctx, answeredAt: never}}
	return c.run()
}

// Upgrade acquires the rest of the key beside a reader, or returns the reason why not. A try
// does not wait.
func (e *Engine) Upgrade(ctx context.Context, reader *Hold, try bool) (*Hold, error) {
	claim := reader.lease.claim()
	c := call{attempt: attempt{core: reader.core, ctx: ctx, answeredAt: never, reader: reader}}
	c.Key, c.Limited = claim.Key, try
	c.Terms = reader.lease.terms()
	c.Weight = driver.MaxWeight - claim.Weight
	return c.run()
}

// Closed reports whether Close was called.
func (e *Engine) Closed() bool { return e.closed.Load() }

// A Size counts the state of an engine. An idle engine has no state.
type Size struct {
	Turns, Leases, Leftovers int
	Early                    int // losses reported before the grant
}

// Size counts the state of the engine.
func (e *Engine) Size() (s Size) {
	for _, c := range e.cores {
		t := c.lock()
		s.Turns += len(t.turns)
		s.Leases += len(t.agenda.leases)
		s.Leftovers += len(t.leftovers)
		for _, turn := range t.turns {
			s.Early += len(turn.early)
		}
		c.unlock()
	}
	return s
}

// Now is the time since the engine was made.
func (e *Engine) Now() time.Duration { return e.clock.Now() }

// lost receives a loss from the store.
func (e *Engine) lost(key, id string, err error) {
	c := e.of(key)
	var h *Hold
	if turn := c.lock().turns[key]; turn != nil {
		h = turn.noteLoss(id, err)
	}
	c.unlock()
	if h != nil {
		h.lose(lossOf(err))
	}
}

// Close ends all waits with ErrClosed, ends every hold, and closes the store. A second
// Close returns nil.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	var holds []*Hold
	var dropped []*lease
	for _, c := range e.cores {
		held, gone := closeCore(c)
		holds, dropped = append(holds, held...), append(dropped, gone...)
	}
	close(e.closing)
	for _, l := range dropped {
		loseDropped(e.of(l.claim().Key), l)
	}
	err := e.unlockAll(holds)
	for _, c := range e.cores {
		c.busy.Wait()
	}
	if e.ignore != nil {
		e.ignore()
	}
	return errors.Join(err, e.config.Store.Close())
}

// closeCore ends every wait for the keys of a core. It returns the holds, and the leases of dropped
// holds.
func closeCore(c *core) (holds []*Hold, dropped []*lease) {
	t := c.lock()
	defer c.unlock()
	holds, dropped, parked := t.close()
	for _, l := range parked {
		cleaner{c}.add(t, l.release[0])
		t.drop(l)
		close(l.released)
	}
	return holds, dropped
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
	left, errLeft := endAll(leaving, e.config.Store.Renew)
	kept, err := endAll(going, e.config.Store.Release)
	err = silence.Of(cmp.Or(err, errLeft), time.Since(began))
	failed := make(map[string]bool, len(left)+len(kept)) // by id
	for _, r := range left {
		failed[r.ID] = true
	}
	for _, r := range kept {
		failed[r.ID] = true
		c := e.of(r.Key)
		cleaner{c}.add(c.lock(), r)
		c.unlock()
	}
	for _, c := range e.cores {
		c.lock().until = e.Now() + closingGrace
		c.unlock()
	}
	for _, h := range holds {
		event := h.event(e.Now())
		if failed[h.ID()] {
			event.Err = err
		}
		emit(e.config.Hooks.Unlocked, event)
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
