package elect

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

const (
	job = "mailer"
	ttl = 15 * time.Second
)

// simulate runs a test in virtual time, with a store that it can cut off.
func simulate(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := &store{Store: memlock.New()}
		b := &bench{T: t, store: store, locks: must.Get(holdfast.New(store, nil))}
		b.ctx, b.stop = context.WithCancel(t.Context())
		test(b)
		b.stop()
		b.locks.Close()
	})
}

type bench struct {
	*testing.T
	store *store
	locks *holdfast.Locker
	ctx   context.Context
	stop  context.CancelFunc
}

// A store does not answer while it is cut off.
type store struct {
	*memlock.Store
	cut atomic.Bool
}

var errCut = errors.New("no route to host")

func (s *store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	if s.cut.Load() {
		return driver.Grant{}, errCut
	}
	return s.Store.Acquire(ctx, a)
}

func (s *store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	if s.cut.Load() {
		return []error{errCut}
	}
	return s.Store.Renew(ctx, rs)
}

func (s *store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	if s.cut.Load() {
		return nil, errCut
	}
	return s.Store.Holders(ctx, key)
}

// A runner is a Run in the background.
type runner struct {
	leads   atomic.Int64 // terms that have begun
	leading atomic.Int64
	reports chan error
	result  chan error
}

// run campaigns with fn, which counts as leading until it returns.
func (b *bench) run(fn func(ctx context.Context) error, opts ...Option) *runner {
	r := &runner{reports: make(chan error, 10_000), result: make(chan error, 1)}
	opts = append(opts, Report(func(err error) { r.reports <- err }))
	go func() {
		r.result <- Run(b.ctx, b.locks, job, func(ctx context.Context) error {
			if r.leading.Add(1) > 1 {
				b.Error("two leaders in one process")
			}
			defer r.leading.Add(-1)
			r.leads.Add(1)
			return fn(ctx)
		}, opts...)
	}()
	return r
}

// lead is what a leader does that works until it is told to end.
func lead(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// after lets a time pass, and all come to rest.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// expect checks how many terms there were, and whether this one leads.
func (b *bench) expect(what string, r *runner, leads, leading int64) {
	b.Helper()
	synctest.Wait()
	if r.leads.Load() != leads || r.leading.Load() != leading {
		b.Errorf("%s: it has led %d times, and %d do now; want %d and %d", what, r.leads.Load(), r.leading.Load(), leads, leading)
	}
}

// reported checks that something was reported.
func (b *bench) reported(r *runner, want error) {
	b.Helper()
	synctest.Wait()
	for {
		select {
		case err := <-r.reports:
			if errors.Is(err, want) {
				return
			}
		default:
			b.Errorf("%v was not reported", want)
			return
		}
	}
}
