package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/redlock"
)

// errDown is what a node says that is down, or whose answer is lost.
var errDown = errors.New("connection refused")

// A faulty node is a memlock that a test can delay, cut off and restart.
type faulty struct {
	mu    sync.Mutex
	inner *memlock.Store
	born  time.Time
	fault fault
	calls []string // what has arrived: the method, and the token asked for
}

// A fault is what happens to a call. do lets it arrive.
type fault func(ctx context.Context, do func()) error

func down(context.Context, func()) error { return errDown }

func hung(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

func mute(_ context.Context, do func()) error {
	do()
	return errDown
}

// tardy lets answers come that much later.
func tardy(d time.Duration) fault {
	return func(ctx context.Context, do func()) error {
		do()
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// slow lets calls arrive that much later, whether they are still waited for or
// not.
func slow(d time.Duration) fault {
	return func(ctx context.Context, do func()) error {
		done := make(chan struct{})
		go func() {
			time.Sleep(d)
			do()
			close(done)
		}()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newFaulty returns a node without a fault that has run for long enough.
func newFaulty() *faulty {
	return &faulty{inner: memlock.New(), born: time.Now().Add(-time.Hour)}
}

func (f *faulty) set(fault fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// restart lets the node come back without its claims.
func (f *faulty) restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inner, f.born, f.fault = memlock.New(), time.Now(), nil
}

func (f *faulty) store() *memlock.Store {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.inner
}

// seen returns what has arrived since it was last called.
func (f *faulty) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func (f *faulty) call(ctx context.Context, name string, do func()) error {
	f.mu.Lock()
	fault := f.fault
	f.mu.Unlock()
	arrive := func() {
		f.mu.Lock()
		f.calls = append(f.calls, name)
		f.mu.Unlock()
		do()
	}
	if fault == nil {
		arrive()
		return nil
	}
	return fault(ctx, arrive)
}

func (f *faulty) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	type result struct {
		g   driver.Grant
		err error
	}
	results := make(chan result, 1)
	err := f.call(ctx, "acquire", func() {
		g, err := f.store().Acquire(context.WithoutCancel(ctx), a)
		results <- result{g, err}
	})
	if err != nil {
		return driver.Grant{}, err
	}
	r := <-results
	return r.g, r.err
}

func (f *faulty) each(ctx context.Context, name string, claims int, do func(*memlock.Store) []error) []error {
	results := make(chan []error, 1)
	if err := f.call(ctx, name, func() { results <- do(f.store()) }); err != nil {
		return slices.Repeat([]error{err}, claims)
	}
	return <-results
}

func (f *faulty) Renew(ctx context.Context, rs []driver.Renewal) []error {
	name := "renew"
	if len(rs) > 0 && rs[0].Fence > 0 {
		name = "raise"
	}
	return f.each(ctx, name, len(rs), func(m *memlock.Store) []error { return m.Renew(ctx, rs) })
}

func (f *faulty) Release(ctx context.Context, rs []driver.Release) []error {
	return f.each(ctx, "release", len(rs), func(m *memlock.Store) []error { return m.Release(ctx, rs) })
}

func (f *faulty) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	if err := f.call(ctx, "watch", func() {}); err != nil {
		return nil, err
	}
	return f.store().Watch(ctx, c, wake)
}

func (f *faulty) Holders(ctx context.Context, key string) (hs []driver.Holder, err error) {
	if err := f.call(ctx, "holders", func() {}); err != nil {
		return nil, err
	}
	return f.store().Holders(ctx, key)
}

func (f *faulty) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return f.store().Keys(ctx, prefix)
}

func (f *faulty) Break(ctx context.Context, key, id string) error {
	if err := f.call(ctx, "break", func() {}); err != nil {
		return err
	}
	return f.store().Break(ctx, key, id)
}

func (f *faulty) Age(context.Context) (time.Duration, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Since(f.born), nil
}

func (f *faulty) Close() error { return nil }

// A set is what most tests run on: nodes, and clients of them.
type set struct {
	*testing.T
	nodes []*faulty
	ids   int
}

// bubble runs a test in a synctest bubble on so many nodes, which have run for
// long enough.
func bubble(t *testing.T, nodes int, f func(*set)) {
	synctest.Test(t, func(t *testing.T) {
		s := &set{T: t}
		for range nodes {
			s.nodes = append(s.nodes, newFaulty())
		}
		f(s)
	})
}

func (s *set) client() *redlock.Store { return s.clientWith(nil) }

func (s *set) clientWith(opts *redlock.Options) *redlock.Store {
	var nodes []driver.Store
	for _, n := range s.nodes {
		nodes = append(nodes, n)
	}
	store := must.Get(redlock.New(nodes, opts))
	s.Cleanup(func() { s.must(store.Close()) })
	return store
}

func (s *set) ask() driver.Ask {
	s.ids++
	return driver.Ask{Span: 1, Claim: driver.Claim{
		Key: "key", ID: fmt.Sprint("claim ", s.ids), Owner: "test",
		Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: 10 * time.Second,
	}}
}

func (s *set) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *set) granted(store *redlock.Store, a driver.Ask) driver.Grant {
	s.Helper()
	g, err := store.Acquire(s.Context(), a)
	if err != nil || !g.OK {
		s.Fatalf("%s was answered %+v, %v; want it granted", a.ID, g, err)
	}
	return g
}

func (s *set) refused(store *redlock.Store, a driver.Ask) driver.Grant {
	s.Helper()
	g, err := store.Acquire(s.Context(), a)
	if err != nil || g.OK {
		s.Fatalf("%s was answered %+v, %v; want it refused", a.ID, g, err)
	}
	return g
}

func (s *set) released(store *redlock.Store, c driver.Claim) {
	s.Helper()
	if errs := store.Release(s.Context(), []driver.Release{{Claim: c}}); errs != nil {
		s.Fatal(errs)
	}
}

func (s *set) renewal(store *redlock.Store, c driver.Claim) error {
	if errs := store.Renew(s.Context(), []driver.Renewal{{Claim: c}}); errs != nil {
		return errs[0]
	}
	return nil
}

// empty checks that no node has anything left of anybody.
func (s *set) empty() {
	s.Helper()
	for i, n := range s.nodes {
		if hs, _ := n.store().Holders(s.Context(), "key"); len(hs) > 0 {
			s.Errorf("node %d still has %+v", i+1, hs)
		}
	}
}
