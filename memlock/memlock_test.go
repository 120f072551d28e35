package memlock

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
)

// tester is a Store with the checks that most tests repeat.
type tester struct {
	*testing.T
	*Store
}

func (t tester) acquire(c driver.Ask) driver.Grant {
	t.Helper()
	g, err := t.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("Acquire(%s): %v", c.ID, err)
	}
	return g
}

func (t tester) granted(c driver.Ask) driver.Grant {
	t.Helper()
	g := t.acquire(c)
	if !g.OK {
		t.Fatalf("%s was refused, want it granted", c.ID)
	}
	return g
}

func (t tester) refused(c driver.Ask) driver.Grant {
	t.Helper()
	g := t.acquire(c)
	if g.OK {
		t.Fatalf("%s was granted, want it refused", c.ID)
	}
	return g
}

func (t tester) release(cs ...driver.Ask) {
	t.Helper()
	if errs := t.Release(t.Context(), asks.Releases(cs...)); errs != nil {
		t.Fatalf("Release: %v", errs)
	}
}

// size is how many keys are in the map.
func (t tester) size() (n int) {
	for i := range t.space.parts {
		n += len(t.space.parts[i].shelves)
	}
	return n
}

// spare yields the shelves that are kept for reuse.
func (t tester) spare() iter.Seq[*shelf] {
	return func(yield func(*shelf) bool) {
		for i := range t.space.parts {
			for _, sh := range t.space.parts[i].spare {
				if !yield(sh) {
					return
				}
			}
		}
	}
}

func (t tester) sweep() {
	for i := range t.space.parts {
		p := &t.space.parts[i]
		p.sweep(p.momentLocked().Now)
	}
}

// empty checks that nothing is left of anybody.
func (t tester) empty() {
	t.Helper()
	if n := t.size(); n != 0 {
		t.Errorf("%d keys are left in the map, want none", n)
	}
	for sh := range t.spare() {
		full := sh.Held[:cap(sh.Held)]
		for _, e := range full {
			if e.ID != "" {
				t.Fatal("a spare shelf still points to a claim")
			}
		}
	}
}

func bubble(t *testing.T, f func(t tester)) {
	synctest.Test(t, func(t *testing.T) { f(tester{t, New()}) })
}

func TestLease(t *testing.T) {
	bubble(t, func(t tester) {
		a, b := writer("key", "a"), writer("key", "b")
		first := t.granted(a)
		if first.TTL != a.TTL || first.Fence != uint64(time.Now().UnixMicro()) {
			t.Errorf("granted %+v, want its TTL and the wall clock's microseconds", first)
		}
		time.Sleep(10 * time.Second)
		if errs := t.Renew(t.Context(), asks.Renewals(a)); errs != nil {
			t.Fatal(errs)
		}
		time.Sleep(15*time.Second - time.Nanosecond)
		b.Wait = false
		if g := t.refused(b); g.Left != 1 || g.Holder.ID != driver.PublicID("a") {
			t.Errorf("refused with %+v, want a to be in the way for 1ns", g)
		}
		time.Sleep(time.Nanosecond)
		if g := t.granted(b); g.Fence <= first.Fence {
			t.Errorf("token %d after %d", g.Fence, first.Fence)
		}
		if errs := t.Renew(t.Context(), asks.Renewals(a)); !errors.Is(errs[0], driver.ErrLost) {
			t.Errorf("renewing what has run out says %v, want ErrLost", errs)
		}
		t.release(b)
		t.empty()
	})
}

// A key that everybody has forgotten must not give a smaller token, although
// nothing is kept of it.
func TestTokensOutliveTheirKey(t *testing.T) {
	bubble(t, func(t tester) {
		var last uint64
		for i := range 100 {
			c := writer(fmt.Sprint("key", i%3), fmt.Sprint(i))
			c.Span = 256 // far ahead of the clock, which stands still here
			g := t.granted(c)
			if g.Fence <= last {
				t.Fatalf("token %d after %d", g.Fence, last)
			}
			last = g.Fence + uint64(g.Span) - 1
			t.release(c)
		}
		t.empty()
	})
}

func TestAnswersInOrder(t *testing.T) {
	bubble(t, func(t tester) {
		var cs []driver.Ask
		for i := range 500 {
			c := writer(fmt.Sprint("key", i), fmt.Sprint(i))
			if cs = append(cs, c); i%7 != 3 {
				t.granted(c)
			}
		}
		check := func(call string, errs []error) {
			if len(errs) != len(cs) {
				t.Fatalf("%s gave %d answers for %d claims", call, len(errs), len(cs))
			}
			for i, err := range errs {
				if lost := errors.Is(err, driver.ErrLost); lost != (i%7 == 3) || !lost && err != nil {
					t.Fatalf("%s says %v of claim %d", call, err, i)
				}
			}
		}
		check("Renew", t.Renew(t.Context(), asks.Renewals(cs...)))
		check("Release", t.Release(t.Context(), asks.Releases(cs...)))
		t.empty()
	})
}

func TestForgottenKeysAreSwept(t *testing.T) {
	bubble(t, func(t tester) {
		most := minCrowd * parts
		for i := range 20 * most {
			t.granted(writer(fmt.Sprint("key", i), fmt.Sprint(i)))
			time.Sleep(100 * time.Millisecond) // 150 live at a time
		}
		if n := t.size(); n > most {
			t.Errorf("%d keys are in the map, of which 150 are live", n)
		}
		live := 0
		for _, err := range t.Keys(t.Context(), "key") {
			if err != nil {
				t.Fatal(err)
			}
			live++
		}
		if live != 149 { // those of the last 14.9 s
			t.Errorf("Keys shows %d, want the 149 live ones", live)
		}
	})
}

// A tombstone and a watch keep a key from being forgotten.
func TestSweepKeepsWhatMatters(t *testing.T) {
	bubble(t, func(t tester) {
		late := writer("late", "a")
		_ = t.Release(t.Context(), []driver.Release{{Claim: late.Claim, Late: true}})
		stop, err := t.Watch(t.Context(), writer("watched", "b").Claim, func(driver.Grant) {})
		if err != nil {
			t.Fatal(err)
		}
		t.sweep()
		t.refused(late)
		if t.space.of("watched").shelves["watched"] == nil {
			t.Error("a watched key was swept")
		}
		stop()
		stop()
		time.Sleep(10 * time.Second)
		t.sweep()
		t.empty()
	})
}

func TestManyReadersLeaveNoRoomBehind(t *testing.T) {
	bubble(t, func(t tester) {
		var cs []driver.Ask
		for i := range 4 * maxRoom {
			c := writer("key", fmt.Sprint(i))
			c.Weight = 1
			cs = append(cs, c)
			t.granted(c)
		}
		t.release(cs...)
		t.empty()
		for range t.spare() {
			t.Error("the large shelf is kept, want it to be dropped")
		}
	})
}

func TestClosed(t *testing.T) {
	bubble(t, func(t tester) {
		c := writer("key", "a")
		t.granted(c)
		woken, watches := 0, 20*parts
		for i := range watches {
			if _, err := t.Watch(t.Context(), writer(fmt.Sprint("key", i), "a").Claim, func(driver.Grant) { woken++ }); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := t.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if woken != watches {
			t.Errorf("Close woke %d of %d watches", woken, watches)
		}
		_, acquire := t.Acquire(t.Context(), c)
		_, watch := t.Watch(t.Context(), c.Claim, func(driver.Grant) {})
		_, holders := t.Holders(t.Context(), "key")
		var keys error
		for _, keys = range t.Keys(t.Context(), "") {
		}
		errs := []error{
			acquire, watch, holders, keys, t.Break(t.Context(), "key", driver.PublicID("a")),
			t.Renew(t.Context(), asks.Renewals(c))[0], t.Release(t.Context(), asks.Releases(c))[0],
		}
		for i, err := range errs {
			if err != errClosed {
				t.Errorf("call %d after Close says %v, want %v", i, err, errClosed)
			}
		}
		t.Notify(func(string, string, error) {})()
	})
}

// Random calls from many goroutines. A caller with an exclusive grant counts itself in, and
// out again before the lease expires.
func TestExclusion(t *testing.T) {
	bubble(t, func(t tester) {
		var inside [4]struct {
			sync.Mutex
			last uint64
		}
		var group sync.WaitGroup
		for worker := range 16 {
			group.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), 2))
				for i := range 300 {
					n := random.IntN(len(inside))
					c := writer(fmt.Sprint("key", n), fmt.Sprintf("%d/%d", worker, i))
					g, ok := t.wait(c)
					if !ok {
						return
					}
					if !inside[n].TryLock() {
						t.Errorf("%s holds %s beside another", c.ID, c.Key)
						return
					}
					if g.Fence <= inside[n].last {
						t.Errorf("token %d after %d", g.Fence, inside[n].last)
					}
					inside[n].last = g.Fence
					inside[n].Unlock()
					if errs := t.Release(t.Context(), asks.Releases(c)); errs != nil {
						t.Errorf("Release: %v", errs)
					}
				}
			})
		}
		group.Wait()
		t.empty()
	})
}

// wait takes the claim as the engine does: ask, watch, ask again, sleep.
func (t tester) wait(c driver.Ask) (driver.Grant, bool) {
	wakes := make(chan driver.Grant, 1)
	stop, err := t.Watch(t.Context(), c.Claim, func(g driver.Grant) {
		select {
		case wakes <- g:
		default: // It will ask anyway.
		}
	})
	if err != nil {
		t.Error(err)
		return driver.Grant{}, false
	}
	defer stop()
	for {
		g, err := t.Acquire(t.Context(), c)
		if err != nil {
			t.Error(err)
			return g, false
		}
		if g.OK {
			return g, true
		}
		if g = <-wakes; g.OK {
			return g, true
		}
	}
}

func TestLateAcquireOverBatches(t *testing.T) {
	bubble(t, func(t tester) {
		a, b := writer("key", "a"), writer("key", "b")
		t.granted(a)
		t.refused(b)
		late := []driver.Release{{Claim: b.Claim, Late: true}, {Claim: a.Claim, Late: true}}
		if errs := t.Release(t.Context(), late); errs != nil {
			t.Fatalf("Release: %v", errs)
		}
		t.refused(a)
		t.refused(b)
		keys := slices.Collect(func(yield func(string) bool) {
			for key := range t.Keys(t.Context(), "") {
				yield(key)
			}
		})
		if len(keys) != 0 {
			t.Errorf("Keys shows %q, want nothing: a tombstone is no claim", keys)
		}
	})
}
