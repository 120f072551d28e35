package drivertest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
)

// A client is one process's store, with the calls of the contract, and the answers expected
// by a rule.
type client struct {
	*env
	store driver.Store
}

// close ends the client before its rule does.
func (c *client) close() {
	if i := slices.Index(c.opened, c.store); i >= 0 {
		c.opened = slices.Delete(c.opened, i, i+1)
	}
	if err := c.store.Close(); err != nil {
		c.failf("Close returned %v", told(err))
	}
}

// acquire asks once.
func (c *client) acquire(claim driver.Ask) driver.Grant {
	ctx, cancel := c.bounded()
	defer cancel()
	sent := now()
	grant, err := c.store.Acquire(ctx, claim)
	if err != nil {
		c.failf("Acquire of %s returned %v", show(claim), told(err))
	}
	c.answered(claim, grant, sent)
	return grant
}

// ask is acquire for use by many goroutines at once. An error does not say whether the
// claim was granted, so ask tries again, as the core does.
func (c *client) ask(claim driver.Ask) driver.Grant {
	var err error
	for start := time.Now(); time.Since(start) < patience; {
		ctx, cancel := c.bounded()
		var grant driver.Grant
		sent := now()
		grant, err = c.store.Acquire(ctx, claim)
		cancel()
		if err == nil {
			c.answered(claim, grant, sent)
			return grant
		}
		<-time.After(10 * time.Millisecond)
	}
	c.failf("Acquire of %s returned errors for %v, the last one: %v", show(claim), patience, told(err))
	return driver.Grant{}
}

// granted asks once and expects a yes.
func (c *client) granted(claim driver.Ask) driver.Grant {
	end := c.runsOut(claim.Claim)
	grant := c.acquire(claim)
	if !grant.OK {
		c.fail(c.prompt(end), "Acquire of %s was refused%s", show(claim), because(grant))
	}
	return grant
}

// refused asks once and expects a no.
func (c *client) refused(claim driver.Ask) driver.Grant {
	grant := c.acquire(claim)
	if grant.OK {
		c.failf("Acquire of %s was granted", show(claim))
	}
	return grant
}

// takes acquires a new exclusive claim.
func (c *client) takes(name string) driver.Ask {
	claim := c.exclusive(name)
	c.granted(claim)
	return claim
}

// waits requests a new exclusive claim with Wait, and expects a no.
func (c *client) waits(name string) driver.Ask {
	claim := waiting(c.exclusive(name))
	c.refused(claim)
	return claim
}

// renew renews claims and raises no token.
func (c *client) renew(claims ...driver.Ask) []error {
	return c.renewals(asks.Renewals(claims...)...)
}

// renewals returns one error per claim, also if the store returned nil.
func (c *client) renewals(rs ...driver.Renewal) []error {
	ctx, cancel := c.bounded()
	defer cancel()
	return c.perClaim("Renew", len(rs), c.store.Renew(ctx, rs))
}

// release releases claims of which no Acquire is on its way.
func (c *client) release(claims ...driver.Ask) []error {
	return c.releases(asks.Releases(claims...)...)
}

// releases returns one error per claim, also if the store returned nil.
func (c *client) releases(rs ...driver.Release) []error {
	ctx, cancel := c.bounded()
	defer cancel()
	return c.perClaim("Release", len(rs), c.store.Release(ctx, rs))
}

// perClaim reads a nil slice as the contract does: nil for every claim. A slice of the
// wrong length fails the rule at once, since no answer could be matched with its claim.
func (c *client) perClaim(call string, n int, errs []error) []error {
	if errs == nil {
		return make([]error, n)
	}
	if len(errs) != n {
		c.failf("%s of %d claims returned %d errors", call, n, len(errs))
	}
	return errs
}

// kept renews a claim and expects that the claim stands.
func (c *client) kept(claim driver.Ask) { c.keeps(driver.Renewal{Claim: claim.Claim}) }

// keeps is kept for a renewal of any kind.
func (c *client) keeps(r driver.Renewal) {
	end, sent := c.runsOut(r.Claim), now()
	if err := c.renewals(r)[0]; err != nil {
		c.fail(c.prompt(end), "Renew of %s returned %v", show(driver.Ask{Claim: r.Claim}), told(err))
	}
	c.given(r.Claim, sent)
}

// lost renews a claim and expects that the claim is gone.
func (c *client) lost(claim driver.Ask) {
	if err := c.renew(claim)[0]; !errors.Is(err, driver.ErrLost) {
		c.failf("Renew of %s returned %v, not ErrLost", show(claim), told(err))
	}
}

// ended releases claims in one call, and expects that the release ended each claim.
func (c *client) ended(claims ...driver.Ask) {
	for i, err := range c.release(claims...) {
		if err != nil {
			c.failf("Release of %s returned %v", show(claims[i]), told(err))
		}
	}
}

// ends is ended for a release of any kind.
func (c *client) ends(r driver.Release) {
	end := c.runsOut(r.Claim)
	if err := c.releases(r)[0]; err != nil {
		c.fail(c.prompt(end), "Release of %s returned %v", show(driver.Ask{Claim: r.Claim}), told(err))
	}
}

// nothing releases a claim and expects that there was nothing to end.
func (c *client) nothing(claim driver.Ask) {
	if err := c.release(claim)[0]; !errors.Is(err, driver.ErrLost) {
		c.failf("Release of %s returned %v, not ErrLost", show(claim), told(err))
	}
}

// eventually asks until the claim is granted, and fails if that takes much longer than ttl,
// the TTL of the blocking claim.
func (c *client) eventually(claim driver.Ask, ttl time.Duration) driver.Grant {
	return c.lapses(claim, now().Add(-ttl), ttl)
}

// lapses asks for a claim until the claim is granted. At sent, a request was sent that gave
// the blocking claim a TTL of ttl. lapses fails if the grant comes sooner than ttl after
// sent, or much later.
func (c *client) lapses(claim driver.Ask, sent time.Time, ttl time.Duration) driver.Grant {
	pause := time.Millisecond
	for {
		grant := c.acquire(claim)
		passed := time.Since(sent)
		switch {
		case grant.OK && passed < ttl-c.slack():
			c.failf("%s was granted %v after the request that gave the claim in its way %v", show(claim), passed, ttl)
		case grant.OK:
			return grant
		case passed > 5*ttl+patience:
			c.failf("%s was still refused %v after the request that gave the claim in its way %v", show(claim), passed, ttl)
		}
		if pause = min(2*pause, 100*time.Millisecond); claim.Wait {
			pause = min(pause, claim.Alive()/4)
		}
		if left := ttl - c.slack() - passed; left > 0 {
			// Ask once just before the claim may be granted, to find a blocking claim
			// that ends a little early.
			pause = min(pause, max(left-c.instant(), c.instant()))
		}
		<-time.After(pause)
	}
}

// show names a claim for a report. The note of the claim is its name within the rule.
func show(claim driver.Ask) string {
	kind := fmt.Sprintf("weight %d of %d", claim.Weight, claim.Limit)
	switch {
	case claim.Exclusive():
		kind = "exclusive"
	case claim.Shared() && claim.Weight == 1:
		kind = "reader"
	}
	if claim.Wait {
		kind += ", waiting"
	}
	return fmt.Sprintf("%q (%s, TTL %v)", claim.Note, kind, claim.TTL)
}

// because adds to a report which claim the store names as being in the way.
func because(grant driver.Grant) string {
	if grant.Holder == (driver.Holder{}) {
		return ""
	}
	return fmt.Sprintf(", because of %q with %v left", grant.Holder.Note, grant.Holder.Left)
}

// An outcome is an error in a report.
type outcome struct{ err error }

// told marks an error for a report. fail looks for such marks to find out whether a call
// had no answer.
func told(err error) outcome { return outcome{err} }

func (o outcome) String() string {
	if o.err == nil {
		return "nil"
	}
	return fmt.Sprintf("the error %q", o.err)
}

// noAnswer reports whether part of a report is an error that leaves the outcome of a call
// open.
func noAnswer(part any) bool {
	o, ok := part.(outcome)
	return ok && o.err != nil && !errors.Is(o.err, driver.ErrLost) && !errors.Is(o.err, driver.ErrInvalid)
}

// cut is a text in a report, shortened if long.
func cut(s string) string {
	if len(s) <= 80 {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q... of %d bytes", strings.ToValidUTF8(s[:60], ""), len(s))
}
