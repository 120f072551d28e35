package drivertest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// pause is how long a machine stalls once: longer than a silent claim keeps its
// place in line.
const pause = 4 * time.Second

// A stalling store is sound, but one call takes very long, before the store has
// it or after.
type stalling struct {
	clerk
	calls *atomic.Int64
	at    int64
	after bool
}

func (s stalling) stall(call func()) {
	if s.calls.Add(1) != s.at {
		call()
		return
	}
	if s.after {
		call()
	}
	<-time.After(pause)
	if !s.after {
		call()
	}
}

func (s stalling) Acquire(ctx context.Context, c driver.Claim) (g driver.Grant, err error) {
	s.stall(func() { g, err = s.clerk.Acquire(ctx, c) })
	return g, err
}

func (s stalling) Renew(ctx context.Context, cs []driver.Claim) (errs []error) {
	s.stall(func() { errs = s.clerk.Renew(ctx, cs) })
	return errs
}

func (s stalling) Release(ctx context.Context, cs []driver.Claim) (errs []error) {
	s.stall(func() { errs = s.clerk.Release(ctx, cs) })
	return errs
}

func (s stalling) Break(ctx context.Context, key, id string) (err error) {
	s.stall(func() { err = s.clerk.Break(ctx, key, id) })
	return err
}

// TestStalledMachine checks that no rule takes a machine that stalls once for a
// store that is wrong.
func TestStalledMachine(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, after := range []bool{false, true} {
				for at := int64(1); ; at++ {
					calls, failure := r.stalled(t, at, after)
					if failure != nil {
						t.Errorf("call %d stalls (after it was done: %v): %v", at, after, failure)
					}
					if calls < at || at == 30 {
						break
					}
				}
			}
		})
	}
}

// stalled tries a rule on real time, as seen from within a bubble.
func (r rule) stalled(t *testing.T, at int64, after bool) (calls int64, failure error) {
	var n atomic.Int64
	w := right()
	w.wrap = func(c clerk) driver.Store { return stalling{c, &n, at, after} }
	h := ledgers(w)
	h.Bubble = false
	if r.when != nil && !r.when(h) {
		return 0, nil
	}
	synctest.Test(t, func(t *testing.T) { failure = attempt(t, h, r.check) })
	if failure != nil {
		failure = fmt.Errorf("%s: %w", r.words, failure)
	}
	return n.Load(), failure
}
