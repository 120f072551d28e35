package drivertest

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rules"
)

// Bench measures what the core requests of a store most often: an uncontended lock, many
// such locks at once, handing a key over, and renewing in batches. Bench ignores
// Harness.Bubble: the time is real.
func Bench(b *testing.B, h Harness) {
	h.Bubble = false
	for _, bench := range []struct {
		name string
		run  func(*testing.B, *env)
	}{
		{"uncontended", benchUncontended},
		{"distinct-keys-64", benchDistinct},
		{"hand-over", benchHandOver},
		{"renew-500", benchRenew},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			if seen := attempt(b, h, new(tries), func(e *env) { bench.run(b, e) }); seen != nil {
				b.Fatal(seen)
			}
		})
	}
}

// benchUncontended takes and releases one key again and again. This is the price of a lock
// that nobody else wants, which most locks are.
func benchUncontended(b *testing.B, e *env) {
	c := e.client()
	c.laps(e.exclusive("only"), b.Loop)
}

// benchDistinct does the same with 64 goroutines, every goroutine with a key of its own. A
// store that combines requests, or has enough connections, gains here over one goroutine.
func benchDistinct(b *testing.B, e *env) {
	c := e.client()
	b.SetParallelism((64 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		seen := rules.Caught(func() { c.laps(on(e.anotherKey(), e.exclusive("only")), pb.Next) })
		if seen != nil {
			b.Error(seen)
		}
	})
}

// laps acquires and releases a claim that nobody else wants, each time under a new id, with
// little more than the store's own cost.
func (c *client) laps(a driver.Ask, more func() bool) {
	rs := make([]driver.Release, 1)
	for base, n := a.ID, 0; more(); n++ {
		a.ID = base + strconv.Itoa(n)
		grant, err := c.store.Acquire(context.Background(), a)
		if err != nil || !grant.OK {
			c.failf("Acquire of %s returned %s and %s", show(a), brief(grant), told(err))
		}
		rs[0].Claim = a.Claim
		for _, err := range c.store.Release(context.Background(), rs) {
			if err != nil {
				c.failf("Release of %s returned %s", show(a), told(err))
			}
		}
	}
}

// benchHandOver lets two clients take turns with one key. An operation is one
// turn: a release here, a grant there. The clients wait as the core does, so the time has
// the wake-up in it, or the pause of a waiter that polls.
func benchHandOver(b *testing.B, e *env) {
	turns := make(chan struct{}, b.N)
	for range b.N {
		turns <- struct{}{}
	}
	close(turns)
	player := func(c *client) func() {
		return func() {
			for range turns {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				t, ok := c.lock(ctx, waiting(e.exclusive("player")))
				cancel()
				if !ok {
					e.failf("a player was not granted the key within %v", patience)
				}
				c.settle(driver.Release{Claim: t.claim.Claim})
			}
		}
	}
	players := []func(){player(e.client()), player(e.client())}
	b.ResetTimer()
	e.together(players...)
}

// benchRenew renews the claims on 500 keys. An operation is one call. The core renews in such
// batches, so a store with a request for each claim shows in the time of a claim.
func benchRenew(b *testing.B, e *env) {
	c := e.client()
	var rs []driver.Renewal
	for i := range batch {
		claim := on(fmt.Sprint(e.key, "/", i), e.exclusive("held"))
		c.granted(claim)
		rs = append(rs, driver.Renewal{Claim: claim.Claim})
	}
	start, n := time.Now(), 0
	for b.Loop() {
		for _, err := range c.store.Renew(context.Background(), rs) {
			if err != nil {
				e.failf("Renew returned %s", told(err))
			}
		}
		n++
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(n*batch), "ns/claim")
}
