package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

var ttlRules = []rule{
	{
		name:  "ttl/ends",
		words: "A claim that is not renewed stands for its TTL, counted from its request, and then ends.",
		needs: Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			ttl := e.short() * 7 / 5 // Some stores count in whole seconds.
			sent := now()
			grant := a.granted(lasting(e.exclusive("silent"), ttl))
			// The core relies on the TTL of the grant.
			b.lapses(e.exclusive("next"), sent, max(grant.TTL, ttl))
		},
	},
	{
		name:  "ttl/asking-again",
		words: "Asking again for a live claim gives it a fresh TTL.",
		needs: Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim := lasting(e.exclusive("asked for twice"), e.short())
			a.granted(claim)
			<-time.After(e.short() / 2)
			sent := now()
			a.granted(claim)
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	{
		name:  "ttl/each-its-own",
		words: "Each claim on a key has its own TTL.",
		needs: Readers | Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			sent := now()
			a.granted(lasting(e.reader("short"), e.short()))
			b.granted(lasting(e.reader("longer"), 2*e.short()))
			a.granted(lasting(e.reader("short again"), e.short()))
			b.lapses(e.exclusive("writer"), sent, 2*e.short())
		},
	},
	{
		name:  "ttl/too-short",
		words: "A TTL that the store cannot keep is refused as ErrInvalid, and nothing is kept.",
		when:  func(h Harness) bool { return h.MinTTL > 0 },
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim := waiting(lasting(e.exclusive("too short"), e.harness.MinTTL/2))
			a.invalid(claim)
			b.granted(e.exclusive("next"))
		},
	},
	{
		name:  "ttl/shortest",
		words: "The shortest TTL that the store says it can keep is kept.",
		needs: Expiry,
		check: func(e *env) {
			a, b := e.client(), e.client()
			ttl := max(e.harness.MinTTL, time.Millisecond)
			short, sent := lasting(e.exclusive("short"), ttl), now()
			// The claim may have expired before every part of the store had granted it.
			if grant := a.acquire(short); !grant.OK && time.Since(sent) < ttl {
				e.failf("Acquire of %s was refused%s", show(short), because(grant))
			}
			b.lapses(lasting(e.exclusive("next"), ttl), sent, ttl)
		},
	},
	{
		name:  "ttl/very-long",
		words: "A TTL of a month is kept like any other.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim := lasting(e.exclusive("a month"), 31*24*time.Hour)
			a.granted(claim)
			a.kept(claim)
			b.refused(e.exclusive("other"))
			a.ended(claim)
			b.granted(e.exclusive("next"))
		},
	},
}

// invalid asks once and expects that the store can never keep such a claim.
func (c *client) invalid(claim driver.Ask) {
	ctx, cancel := c.bounded()
	defer cancel()
	grant, err := c.store.Acquire(ctx, claim)
	if !errors.Is(err, driver.ErrInvalid) {
		c.failf("Acquire of %s returned %s and %v, not ErrInvalid", show(claim), brief(grant), told(err))
	}
	if grant.OK {
		c.failf("Acquire of %s was granted beside %v", show(claim), told(err))
	}
}
