package drivertest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// pauses are how long a machine stalls once: longer than a silent claim keeps its place in
// the queue, and longer than a store remembers a Release with Late.
var pauses = []time.Duration{4 * time.Second, 11 * time.Second}

// A stalling store is sound, but one call takes very long.
type stalling struct {
	clerk
	calls *atomic.Int64
	at    int64
	how   stall
	pause time.Duration
}

// A stall is the outcome of a call that takes very long.
type stall string

const (
	doneLate   stall = "the store has it late"
	answered   stall = "it is answered late"
	unanswered stall = "it is done and not answered"
	givenBack  stall = "a claim that ran out meanwhile is given back"
)

// stalls makes a call, and reports whether the call takes very long.
func (s stalling) stalls(call func()) bool {
	if s.calls.Add(1) != s.at {
		call()
		return false
	}
	if s.how != doneLate {
		call()
	}
	<-time.After(s.pause)
	if s.how == doneLate {
		call()
	}
	return true
}

func (s stalling) Acquire(ctx context.Context, a driver.Ask) (g driver.Grant, err error) {
	if !s.stalls(func() { g, err = s.clerk.Acquire(ctx, a) }) {
		return g, err
	}
	switch {
	case s.how == unanswered:
		return driver.Grant{}, context.DeadlineExceeded
	case s.how == givenBack && g.OK && a.TTL < s.pause:
		s.clerk.Release(context.Background(), []driver.Release{{Claim: a.Claim}})
		return driver.Grant{}, nil
	}
	return g, err
}

func (s stalling) Renew(ctx context.Context, rs []driver.Renewal) (errs []error) {
	if s.stalls(func() { errs = s.clerk.Renew(ctx, rs) }) && s.how == unanswered {
		errs = slices.Repeat([]error{context.DeadlineExceeded}, len(rs))
	}
	return errs
}

func (s stalling) Release(ctx context.Context, rs []driver.Release) (errs []error) {
	if s.stalls(func() { errs = s.clerk.Release(ctx, rs) }) && s.how == unanswered {
		errs = slices.Repeat([]error{context.DeadlineExceeded}, len(rs))
	}
	return errs
}

func (s stalling) Break(ctx context.Context, key, id string) (err error) {
	if s.stalls(func() { err = s.clerk.Break(ctx, key, id) }) && s.how == unanswered {
		err = context.DeadlineExceeded
	}
	return err
}

// TestStalledMachine checks that no rule takes a single stall of the machine for a mistake of
// the store. In the short form, the machine stalls for the longer pause only.
func TestStalledMachine(t *testing.T) {
	pauses := pauses
	if testing.Short() {
		pauses = pauses[1:]
	}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			for _, pause := range pauses {
				for _, how := range []stall{doneLate, answered, unanswered, givenBack} {
					for at := int64(1); ; at = later(at) {
						calls, failure := r.stalled(t, at, how, pause)
						if failure != nil {
							t.Errorf("call %d stalls for %v, %s: %v", at, pause, how, failure)
						}
						if calls < at || at >= 30 {
							break
						}
					}
				}
			}
		})
	}
}

// later is the next call to stall: every call, or some calls in the short form.
func later(at int64) int64 {
	if testing.Short() {
		return 2*at + 1
	}
	return at + 1
}

// stalled tries a rule on real time, as seen from within a bubble.
func (r rule) stalled(t *testing.T, at int64, how stall, pause time.Duration) (calls int64, failure error) {
	var n atomic.Int64
	w := right()
	w.wrap = func(c clerk) driver.Store { return stalling{c, &n, at, how, pause} }
	h := ledgers(w)
	h.Bubble = false
	if r.when != nil && !r.when(h) {
		return 0, nil
	}
	synctest.Test(t, func(t *testing.T) { failure = insist(t, h, r.check) })
	if failure != nil {
		failure = fmt.Errorf("%s: %w", r.words, failure)
	}
	return n.Load(), failure
}
