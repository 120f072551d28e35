package drivertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Bench measures what the core asks of a store most: a lock that nobody else
// wants, many at once, handing a key over, and renewing in batches. It takes
// no notice of Harness.Bubble: the time is real.
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
			if seen := attempt(b, h, func(e *env) { bench.run(b, e) }); seen != nil {
				b.Fatal(seen)
			}
		})
	}
}

// benchUncontended takes and releases one key again and again.
func benchUncontended(b *testing.B, e *env) {
	c := e.client()
	claim := e.exclusive("only")
	for b.Loop() {
		claim.ID = rand.Text()
		c.granted(claim)
		c.ended(claim)
	}
}

// benchDistinct does so with 64 goroutines, each with a key of its own.
func benchDistinct(b *testing.B, e *env) {
	c := e.client()
	b.SetParallelism((64 + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		seen := caught(func() {
			claim := on(e.anotherKey(), e.exclusive("only"))
			for pb.Next() {
				claim.ID = rand.Text()
				c.granted(claim)
				c.ended(claim)
			}
		})
		if seen != nil {
			b.Error(seen)
		}
	})
}

// benchHandOver lets two clients take turns with one key. An operation is one
// turn: a release here, a grant there.
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
				c.settle(t.claim)
			}
		}
	}
	players := []func(){player(e.client()), player(e.client())}
	b.ResetTimer()
	e.together(players...)
}

// benchRenew renews the claims on 500 keys. An operation is one call.
func benchRenew(b *testing.B, e *env) {
	c := e.client()
	var claims []driver.Claim
	for i := range batch {
		claim := on(fmt.Sprint(e.key, "/", i), e.exclusive("held"))
		c.granted(claim)
		claims = append(claims, claim)
	}
	start, n := time.Now(), 0
	for b.Loop() {
		for _, err := range c.renew(claims...) {
			if err != nil {
				e.failf("Renew returned %v", told(err))
			}
		}
		n++
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(n*batch), "ns/claim")
}
