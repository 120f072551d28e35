package holdfast

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/boottime"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// A faulty store is a memlock whose calls a test can delay, lose and falsify.
type faulty struct {
	*memlock.Store

	mu      sync.Mutex
	acquire func(ctx context.Context, a driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error)
	renew   func(ctx context.Context, rs []driver.Renewal, next func() []error) []error
	release func(ctx context.Context, rs []driver.Release, next func() []error) []error
	watch   func(ctx context.Context) error
	holders func(ctx context.Context) error
	wake    func(g driver.Grant, next func(driver.Grant)) // nil: push as is
	slept   func() time.Duration                          // for how long the machine was suspended; nil: never
	lost    []func(key, id string, err error)             // of the Lockers
	calls   calls
}

// calls counts what the store was asked.
type calls struct{ acquire, renew, release, claims, largest int }

// seen returns what the store was asked since it was last called.
func (f *faulty) seen() calls {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls
	f.calls = calls{}
	return c
}

// set changes the hooks.
func (f *faulty) set(change func(*faulty)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *faulty) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	f.mu.Lock()
	hook := f.acquire
	f.calls.acquire++
	f.mu.Unlock()
	next := func() (driver.Grant, error) { return f.Store.Acquire(context.WithoutCancel(ctx), a) }
	if hook == nil {
		return f.Store.Acquire(ctx, a)
	}
	return hook(ctx, a, next)
}

func (f *faulty) Renew(ctx context.Context, rs []driver.Renewal) []error {
	f.mu.Lock()
	hook := f.renew
	f.calls.renew++
	f.calls.claims += len(rs)
	f.calls.largest = max(f.calls.largest, len(rs))
	f.mu.Unlock()
	next := func() []error { return f.Store.Renew(context.WithoutCancel(ctx), rs) }
	if hook == nil {
		return next()
	}
	return hook(ctx, rs, next)
}

func (f *faulty) Release(ctx context.Context, rs []driver.Release) []error {
	f.mu.Lock()
	hook := f.release
	f.calls.release++
	f.mu.Unlock()
	next := func() []error { return f.Store.Release(context.WithoutCancel(ctx), rs) }
	if hook == nil {
		return next()
	}
	return hook(ctx, rs, next)
}

func (f *faulty) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (func(), error) {
	f.mu.Lock()
	hook := f.watch
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx); err != nil {
			return nil, err
		}
	}
	return f.Store.Watch(ctx, c, func(g driver.Grant) {
		f.mu.Lock()
		hook := f.wake
		f.mu.Unlock()
		if hook == nil {
			wake(g)
			return
		}
		hook(g, wake)
	})
}

func (f *faulty) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	f.mu.Lock()
	hook := f.holders
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx); err != nil {
			return nil, err
		}
	}
	return f.Store.Holders(ctx, key)
}

// hang is a call that ends only with its context.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// all is the same answer for each claim.
func all[T any](claims []T, err error) []error { return slices.Repeat([]error{err}, len(claims)) }

// Clock implements boottime.Simulator: tests suspend the machine.
func (f *faulty) Clock() *boottime.Clock {
	return boottime.Simulated(func() time.Duration {
		f.mu.Lock()
		slept := f.slept
		f.mu.Unlock()
		if slept == nil {
			return 0
		}
		return slept()
	})
}

func (f *faulty) Notify(lost func(key, id string, err error)) (stop func()) {
	f.set(func(f *faulty) { f.lost = append(f.lost, lost) })
	return f.Store.Notify(lost)
}

// tell reports a loss to all Lockers.
func (f *faulty) tell(key, id string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, lost := range f.lost {
		lost(key, id, err)
	}
}

// A bench is what the engine's tests run on: one store, and as many Lockers on
// it as there are processes in the story.
type bench struct {
	*testing.T
	store *faulty
}

// open returns a Locker of its own on the common store. Without a Logger it is
// silent.
func (b *bench) open(opts *Options) *Locker {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	lk := must.Get(New(unclosed{b.store}, &o))
	b.Cleanup(func() {
		if err := lk.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
	})
	return lk
}

// unclosed keeps the common store open when one of its Lockers closes.
type unclosed struct{ *faulty }

func (unclosed) Close() error { return nil }

// simulate runs a story in a bubble of virtual time.
func simulate(t *testing.T, story func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		story(&bench{t, &faulty{Store: memlock.New()}})
	})
}

func (b *bench) lock(lk *Locker, key string, opts ...LockOption) *Lock {
	b.Helper()
	l, err := lk.Lock(b.Context(), key, opts...)
	if err != nil {
		b.Fatalf("Lock(%q): %v", key, err)
	}
	return l
}

func (b *bench) unlock(l *Lock) {
	b.Helper()
	if err := l.Unlock(); err != nil {
		b.Errorf("Unlock(%q): %v", l.Key(), err)
	}
}

// free fails the test unless the key can be had at once.
func (b *bench) free(lk *Locker, key string) {
	b.Helper()
	l, err := lk.TryLock(b.Context(), key)
	if err != nil {
		b.Errorf("%q is not free: %v", key, err)
		return
	}
	b.unlock(l)
}

// ended reports whether the lock's Done is closed.
func ended(l *Lock) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// since is for messages.
func since(t time.Time) time.Duration { return time.Since(t).Round(time.Millisecond) }
