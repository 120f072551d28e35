package drivertest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	// patience bounds a single call. A healthy store needs a thousandth.
	patience = 10 * time.Second

	// long is the TTL of claims that shall not run out by themselves.
	long = 5 * time.Minute
)

// An env is what one rule works with: a key of its own and clients.
type env struct {
	tb      testing.TB
	harness Harness
	key     string
	opened  []driver.Store
	tries   int // that this machine was too slow for
	calls
}

// calls is when the calls of a rule were made.
type calls struct {
	mu      sync.Mutex
	last    time.Time            // the end of the latest
	longest time.Duration        // of all
	ends    map[string]time.Time // by id: a claim that was given its TTL need not stand after
}

// done notes a call that began then and ends now.
func (c *calls) done(began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = now()
	c.longest = max(c.longest, c.last.Sub(began))
}

// given notes that a claim was granted or renewed by a request that was sent then.
func (c *calls) given(claim driver.Claim, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends == nil {
		c.ends = make(map[string]time.Time)
	}
	c.ends[claim.ID] = sent.Add(claim.TTL)
}

// runsOut is until when a claim stands that was given its TTL before, or is by a
// request that is sent now.
func (c *calls) runsOut(claim driver.Claim) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end, ok := c.ends[claim.ID]; ok {
		return end
	}
	return now().Add(claim.TTL)
}

// prompt reports whether a claim that stands until end cannot be gone, nor be kept out
// by a request that was late at some node of the store: no call took long.
func (c *calls) prompt(end time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now().Before(end) && c.longest < time.Second
}

// client opens one more client of the store.
func (e *env) client() *client {
	store := e.harness.Open(e.tb)
	e.opened = append(e.opened, store)
	return &client{env: e, store: store}
}

func (e *env) has(f Feature) bool { return e.harness.Lacks&f == 0 }

// either is another client if that can ask for a claim of the one that has it.
func (e *env) either(has, other *client) *client {
	if e.has(Roam) {
		return other
	}
	return has
}

// short is the TTL of claims that shall run out. Real stores share a machine
// with other tests: a TTL that a busy scheduler may miss would prove nothing. If
// it was missed, the next is longer.
func (e *env) short() time.Duration {
	return max(e.harness.MinTTL, time.Duration(min(1+e.tries, 5))*500*time.Millisecond)
}

// now is time.Now, which in a bubble is the bubble's.
func now() time.Time { return time.Now() }

// slack is by how much a claim may end too soon: clocks are rounded, and the
// core gives up its claims this much before their time for that reason.
func (e *env) slack() time.Duration {
	if e.harness.Bubble {
		return 0
	}
	return 10 * time.Millisecond
}

// instant is the shortest pause that the clock can tell from none.
func (e *env) instant() time.Duration {
	if e.harness.Bubble {
		return 1
	}
	return time.Millisecond
}

// exclusive is a new claim on the rule's key that tolerates no other. The name
// stands for it in reports.
func (e *env) exclusive(name string) driver.Claim {
	return driver.Claim{
		Key: e.key, ID: rand.Text(), Note: name, Owner: "drivertest",
		Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: long, Span: 1,
	}
}

// reader is a new shared claim on the rule's key.
func (e *env) reader(name string) driver.Claim { return e.slot(name, 1, driver.MaxWeight) }

// slot is a new claim on the rule's key that weighs so much of limit.
func (e *env) slot(name string, weight, limit int64) driver.Claim {
	c := e.exclusive(name)
	c.Weight, c.Limit = weight, limit
	return c
}

// waiting is c as a claim that waits in line.
func waiting(c driver.Claim) driver.Claim {
	c.Wait = true
	return c
}

// lasting is c with another TTL.
func lasting(c driver.Claim, ttl time.Duration) driver.Claim {
	c.TTL = ttl
	return c
}

// on is c on another key.
func on(key string, c driver.Claim) driver.Claim {
	c.Key = key
	return c
}

// anotherKey is a key that nothing else uses.
func (e *env) anotherKey() string { return e.key + "/" + strings.ToLower(rand.Text()) }

// together runs functions at the same time, waits for all of them, and fails
// with what the first of them saw, for certain if one did.
func (e *env) together(functions ...func()) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen error
	)
	for _, f := range functions {
		wg.Go(func() {
			err := caught(f)
			mu.Lock()
			defer mu.Unlock()
			if seen == nil || err != nil && errors.As(seen, new(doubt)) {
				seen = err
			}
		})
	}
	wg.Wait()
	if seen != nil {
		panic(broken{seen})
	}
}

// undisturbed repeats steps that must keep ahead of a TTL until they say that
// they did. On a stalled machine a claim may run out without any fault of the
// store.
func (e *env) undisturbed(steps func() (inTime bool)) {
	for range 10 {
		if steps() {
			return
		}
		e.tries++
	}
	e.fail(false, "no answer: each time this machine was too slow to keep a claim alive")
}

// promptly is a check of what holds as long as every node of a store gets each
// request in its time: one that came late somewhere would be the first there.
func promptly(check func(*env)) func(*env) {
	return func(e *env) {
		e.undisturbed(func() (inTime bool) {
			start := now()
			e.key = e.anotherKey()
			seen := caught(func() { check(e) })
			if seen != nil && e.last.Sub(start) < 100*time.Millisecond {
				panic(broken{seen})
			}
			return seen == nil
		})
	}
}

// swift is a check with claims that wait and say nothing meanwhile. After Alive
// a store may forget them. So what the check saw counts only if all its calls
// were done by then; otherwise it is repeated, with another key.
func swift(check func(*env)) func(*env) {
	return func(e *env) {
		e.undisturbed(func() (inTime bool) {
			start, alive := now(), e.exclusive("silent").Alive()
			e.key = e.anotherKey()
			seen := caught(func() { check(e) })
			if seen != nil && e.last.Sub(start) < alive {
				panic(broken{seen})
			}
			return seen == nil
		})
	}
}

// bounded is the context of one call, and notes when that was made.
func (e *env) bounded() (context.Context, context.CancelFunc) {
	began := now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	return ctx, func() {
		cancel()
		e.done(began)
	}
}
