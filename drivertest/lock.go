package drivertest

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A tenure is one client's knowledge of one grant.
type tenure struct {
	claim driver.Ask
	first uint64 // the claim's tokens, first to last
	last  uint64

	born  time.Time // the client first asked
	lined time.Time // the claim was first refused, and in the queue from then on
	asked time.Time // the grant was not made before
	floor uint64    // a grant with no larger token is older than the last refusal
	sent  time.Time // the request that was granted
	from  time.Time // the client knew of it
	until time.Time // the client no longer relied on it

	found   bool          // by asking again, without having been woken
	gap     time.Duration // the longest time between two askings
	slowest time.Duration // the longest call
}

// lock waits for a claim as the core does: it asks, watches, asks again, and then sleeps
// until a wake-up, or until it must ask to keep the place. After an error, lock asks again.
// It gives up when ctx ends.
func (c *client) lock(ctx context.Context, claim driver.Ask) (t tenure, ok bool) {
	t = tenure{claim: claim, born: now(), asked: now()}
	if c.tries(&t) {
		return t, true
	}
	var wakes chan driver.Grant
	if c.has(Watch) {
		w := c.watchOn(claim)
		defer w.stop()
		wakes = w.wakes
		if c.tries(&t) {
			return t, true
		}
	}
	for {
		beat := time.NewTimer(c.heartbeat(claim))
		select {
		case g := <-wakes:
			if g.Fence > t.floor && c.confirms(&t, g) || c.tries(&t) {
				return t, true
			}
		case <-beat.C:
			if c.tries(&t) {
				t.found = c.has(Watch) && len(wakes) == 0
				return t, true
			}
		case <-ctx.Done():
			return t, false
		}
	}
}

// heartbeat is how often a waiting claim asks. A store without wake-ups is asked more
// often, so that runs take no longer than necessary. Either is well within Alive, so a sound
// store keeps the place of the claim.
func (c *client) heartbeat(claim driver.Ask) time.Duration {
	if c.has(Watch) {
		return claim.Alive() / 3
	}
	return claim.Alive() / 25
}

// tries asks once. A refusal moves the time before which the claim was not granted.
func (c *client) tries(t *tenure) bool {
	ctx, cancel := c.bounded()
	defer cancel()
	sent := now()
	g, err := c.store.Acquire(ctx, t.claim)
	t.slowest = max(t.slowest, time.Since(sent))
	switch {
	case err != nil:
		t.floor = math.MaxUint64 // The claim may have been refused, at an unknown time.
		t.gap = math.MaxInt64    // The claim may have lost its place with an ended session.
		return false
	case !g.OK:
		if t.lined.IsZero() {
			t.lined = now()
		} else {
			t.gap = max(t.gap, time.Since(t.asked))
		}
		t.asked, t.floor = sent, g.Floor
		return false
	}
	t.begin(g, sent)
	return true
}

// confirms renews a claim that a wake-up says was granted. The message may have been late, and
// the claim may have ended since.
func (c *client) confirms(t *tenure, g driver.Grant) bool {
	ctx, cancel := c.bounded()
	defer cancel()
	sent := now()
	errs := c.store.Renew(ctx, []driver.Renewal{{Claim: t.claim.Claim}})
	t.slowest = max(t.slowest, time.Since(sent))
	if errs != nil && errs[0] != nil {
		return false // Too late, or unknown: the client asks.
	}
	t.begin(g, sent)
	return true
}

// begin notes a grant. Its holder counts the TTL from before the request, and holds from now on.
func (t *tenure) begin(g driver.Grant, sent time.Time) {
	t.first, t.last = g.Fence, last(g)
	t.sent, t.from, t.until = sent, now(), sent.Add(t.claim.TTL)
}

// extends renews a tenure in use. extends fails the rule if the store says that the claim
// is gone before its time.
func (c *client) extends(t *tenure) {
	ctx, cancel := c.bounded()
	defer cancel()
	sent := now()
	errs := c.store.Renew(ctx, []driver.Renewal{{Claim: t.claim.Claim}})
	switch {
	case errs == nil || errs[0] == nil:
		t.until = sent.Add(t.claim.TTL)
	case errors.Is(errs[0], driver.ErrLost):
		if left := time.Until(t.until); left > c.slack() {
			c.failf("%s was lost with %v of its TTL left", show(t.claim), left)
		}
	}
}

// forfeits breaks a tenure, as an operator would.
func (c *client) forfeits(t *tenure) {
	if sent := now(); sent.Before(t.until) {
		t.until = sent
	}
	if err := c.breakID(t.claim.Key, driver.PublicID(t.claim.ID)); err != nil && !errors.Is(err, driver.ErrLost) {
		c.failf("Break of %s returned %s", show(t.claim), told(err))
	}
}

// unlocks releases a tenure, or a claim that gave up waiting.
func (c *client) unlocks(t *tenure) {
	if sent := now(); sent.Before(t.until) {
		t.until = sent
	}
	c.settle(late(t.claim)) // An Acquire may have been given up before it was answered.
}

// settle releases a claim until the store has answered.
func (c *client) settle(r driver.Release) {
	for start := now(); ; {
		err := c.releases(r)[0]
		if err == nil || errors.Is(err, driver.ErrLost) {
			return
		}
		if time.Since(start) > patience {
			c.failf("Release of %s returned errors for %v, the last one: %v", show(driver.Ask{Claim: r.Claim}), patience, told(err))
		}
		<-time.After(10 * time.Millisecond)
	}
}
