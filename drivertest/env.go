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
	"github.com/holdfast-go/holdfast/internal/rules"
)

const (
	// patience bounds a call or a wait that may hang. A healthy store needs a thousandth
	// of a minute, and even a busy machine does not need the whole minute.
	patience = time.Minute

	// long is the TTL of claims that must not expire by themselves.
	long = 5 * time.Minute
)

// An env is the environment of one rule: a key of its own and clients.
type env struct {
	tb      testing.TB
	harness Harness
	key     string
	opened  []driver.Store
	tries   *tries
	calls
}

// calls records when the calls of a rule were made.
type calls struct {
	mu      sync.Mutex
	last    time.Time            // the end of the latest
	longest time.Duration        // of all
	ends    map[string]time.Time // by id: until when a claim must stand, or keep its place
}

// done notes a call that began at began and ends now.
func (c *calls) done(began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = now()
	c.longest = max(c.longest, c.last.Sub(began))
}

// given notes that a request sent at sent granted or renewed a claim.
func (c *calls) given(claim driver.Claim, sent time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ends == nil {
		c.ends = make(map[string]time.Time)
	}
	c.ends[claim.ID] = sent.Add(claim.TTL)
}

// answered notes the answer to an Acquire sent at sent. A wake-up may grant a waiting claim later,
// and the claim then stands no longer than its place.
func (c *calls) answered(claim driver.Ask, grant driver.Grant, sent time.Time) {
	switch {
	case grant.OK:
		c.given(claim.Claim, sent)
	case claim.Wait:
		claim.TTL = claim.Alive()
		c.given(claim.Claim, sent)
	}
}

// runsOut is when a claim or its place expires: by the last answer or renewal or, if there was
// none, by a request sent now.
func (c *calls) runsOut(claim driver.Claim) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if end, ok := c.ends[claim.ID]; ok {
		return end
	}
	return now().Add(claim.TTL)
}

// prompt reports whether a claim that stands until end cannot be gone, and cannot be kept
// out by a request that was late at some node of the store: no call has taken long.
func (c *calls) prompt(end time.Time) bool { return now().Before(end) && c.quick() }

// quick reports whether no call has taken long.
func (c *calls) quick() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.longest < time.Second
}

// anew begins a try: the calls of earlier tries do not count against it.
func (c *calls) anew() (began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.longest = now(), 0
	return c.last
}

// judgeable reports whether no call since anew took as long as each, and all calls were done
// within total.
func (c *calls) judgeable(began time.Time, each, total time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.longest < each && c.last.Sub(began) < total
}

// watchMachine notes a time for which this process does not run, if a silent claim may lose its place
// meanwhile.
func (c *calls) watchMachine() (stop func()) {
	const tick = 100 * time.Millisecond
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		ticks := time.NewTicker(tick)
		defer ticks.Stop()
		for goesOn := true; goesOn; {
			began := now()
			select {
			case <-ended:
				goesOn = false
			case <-ticks.C:
			}
			if late := now().Sub(began) - tick; late > alive/2 {
				c.mu.Lock()
				c.longest = max(c.longest, late)
				c.mu.Unlock()
			}
		}
	})
	return func() {
		close(ended)
		watching.Wait()
	}
}

// client opens one more client of the store.
func (e *env) client() *client {
	store := e.harness.Open(e.tb)
	e.opened = append(e.opened, store)
	return &client{env: e, store: store}
}

// has reports whether the store is expected to have a feature.
func (e *env) has(f Feature) bool { return e.harness.Lacks&f == 0 }

// either returns other if a second client can request a held claim, and has if not.
func (e *env) either(has, other *client) *client {
	if e.has(Roam) {
		return other
	}
	return has
}

// short is the TTL of claims that must expire. Real stores share a machine with other
// tests: a TTL that a busy scheduler may miss would prove nothing. After a late try, the next
// TTL is longer.
func (e *env) short() time.Duration {
	return max(e.harness.MinTTL, time.Duration(min(1+e.tries.failed, 5))*500*time.Millisecond)
}

// now is time.Now; in a bubble, the time of the bubble.
func now() time.Time { return time.Now() }

// slack is by how much a claim may end too early, because clocks are rounded. For the same
// reason the core gives up its claims this much before their time.
func (e *env) slack() time.Duration {
	if e.harness.Bubble {
		return 0
	}
	return 10 * time.Millisecond
}

// instant is the shortest pause that the clock can measure.
func (e *env) instant() time.Duration {
	if e.harness.Bubble {
		return 1
	}
	return time.Millisecond
}

// exclusive asks for a new claim on the rule's key that excludes every other claim.
// Reports show the name for the claim.
func (e *env) exclusive(name string) driver.Ask {
	return driver.Ask{
		Claim: driver.Claim{
			Key: e.key, ID: rand.Text(), Note: name, Owner: "drivertest",
			Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: long,
		},
		Span: 1,
	}
}

// reader asks for a new shared claim on the rule's key.
func (e *env) reader(name string) driver.Ask { return e.slot(name, 1, driver.MaxWeight) }

// upgrade asks for a new claim that excludes every other claim but one reader.
func (e *env) upgrade(name string) driver.Ask {
	return e.slot(name, driver.MaxWeight-1, driver.MaxWeight)
}

// slot asks for a new claim on the rule's key with a weight of weight, of limit.
func (e *env) slot(name string, weight, limit int64) driver.Ask {
	a := e.exclusive(name)
	a.Weight, a.Limit = weight, limit
	return a
}

// waiting is a with Wait.
func waiting(a driver.Ask) driver.Ask {
	a.Wait = true
	return a
}

// lasting is a with another TTL.
func lasting(a driver.Ask, ttl time.Duration) driver.Ask {
	a.TTL = ttl
	return a
}

// on is a on another key.
func on(key string, a driver.Ask) driver.Ask {
	a.Key = key
	return a
}

// anotherKey is a key that nothing else uses.
func (e *env) anotherKey() string { return e.key + "/" + strings.ToLower(rand.Text()) }

// together runs functions at the same time, waits for every function, and fails with the error
// that is most certain.
func (e *env) together(functions ...func()) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen error
	)
	for _, f := range functions {
		wg.Go(func() {
			err := rules.Caught(f)
			mu.Lock()
			defer mu.Unlock()
			if certainty(err) > certainty(seen) {
				seen = err
			}
		})
	}
	wg.Wait()
	if seen != nil {
		rules.Fail(seen)
	}
}

// undisturbed repeats steps that must keep ahead of a TTL, until the steps report that they
// were in time. On a stalled machine a claim may expire without a fault of the store.
func (e *env) undisturbed(steps func() (inTime bool)) {
	e.unlessLate(func() (late error) {
		if steps() {
			return nil
		}
		return errExpired
	})
}

var errExpired = errors.New("a claim may have expired before the rule was done with it")

// unlessLate repeats steps until they return no error. The error is what was seen in a try
// that was too late to be judged. Ten such tries of a rule are enough, and one
// in each further attempt.
func (e *env) unlessLate(steps func() (late error)) {
	for {
		seen := steps()
		switch {
		case seen == nil:
			return
		case e.tries.failed >= 9:
			rules.Fail(doubt{error: seen, late: true})
		}
		e.tries.add(seen)
	}
}

// within is for a check that a late call can spoil. If the check fails, and a call took each or
// longer, or all calls together took total or longer, within repeats the check, with a new
// key. A time for which the machine does not run this process counts like a call, see watchMachine.
// Every other failure counts. In a bubble nothing is late.
//
// The second try has new clients, because a client may be wrong in its first calls only; the
// others have clients with connections.
func within(each, total time.Duration, c check) check {
	return func(e *env, a, b *client) {
		n := 0
		e.unlessLate(func() (late error) {
			if n++; n == 2 {
				a, b = e.client(), e.client()
			}
			e.key = e.anotherKey()
			began := e.anew()
			seen := rules.Caught(func() {
				if !e.harness.Bubble {
					defer e.watchMachine()()
				}
				c(e, a, b)
			})
			if seen != nil && (e.harness.Bubble || unknown(seen) || e.judgeable(began, each, total)) {
				rules.Fail(seen)
			}
			return seen
		})
	}
}

// callLimit is how long a call takes at most if no node of the store gets the request late.
// Stores also wait this long, or longer, for the connection that tells them of losses.
const callLimit = 100 * time.Millisecond

// promptly is for a check that can fail if a node of a store gets a request late, because
// the request then may be the first at the node.
func promptly(c check) check { return within(callLimit, long, c) }

// swift is for a check with silent waiting claims. After Alive a store may forget silent
// claims.
func swift(c check) check { return within(alive, alive, c) }

// alive is how long a silent claim with a TTL of long keeps its place.
var alive = driver.Claim{TTL: long}.Alive()

// whileRefused is for a check of a claim that was released with Late, which a store remembers
// for ten seconds.
func whileRefused(c check) check { return within(10*time.Second, 10*time.Second, c) }

// quickest repeats a step until the step takes no longer than limit, ten times at most, and
// returns the shortest duration. A busy machine delays a step now and then; a store with a
// wait delays every step. In a bubble only the store delays a step.
func (e *env) quickest(limit time.Duration, step func() (took time.Duration)) time.Duration {
	least := step()
	for i := 1; i < 10 && least > limit && !e.harness.Bubble; i++ {
		least = min(least, step())
	}
	return least
}

// bounded is the context of one call, and records when the call was made.
func (e *env) bounded() (context.Context, context.CancelFunc) {
	began := now()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	return ctx, func() {
		cancel()
		e.done(began)
	}
}
