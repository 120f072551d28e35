package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// ttlRules are about how long a claim stands without a renewal: long enough for the
// holder, and short enough for the waiters behind a crash.
var ttlRules = []rule{
	// The holder counts from before the request, so the store may not end the claim sooner.
	// After a crash the expiry frees the key, so the store may not keep the claim much
	// longer.
	{
		name:  "ttl/ends",
		words: "A claim without renewals stands for its TTL, counted from its request, and then ends.",
		needs: Expiry,
		check: func(e *env, a, b *client) {
			ttl := e.short() * 7 / 5 // Some stores count in whole seconds.
			sent := now()
			grant := a.granted(lasting(e.exclusive("silent"), ttl))
			// The core relies on the TTL of the grant.
			b.lapses(e.exclusive("next"), sent, max(grant.TTL, ttl))
		},
	},
	// The core counts the lease from the request that was answered. If the store still
	// counts from the first request, the claim ends under the holder.
	{
		name:  "ttl/asking-again",
		words: "A repeated request for a live claim gives the claim a fresh TTL.",
		needs: Expiry,
		check: func(e *env, a, b *client) {
			claim := lasting(e.exclusive("asked for twice"), e.short())
			a.granted(claim)
			<-time.After(e.short() / 2)
			sent := now()
			a.granted(claim)
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// Readers with different TTLs share a key. A store with one expiry for the key ends the
	// longest claim with the shortest, or keeps dead claims with live ones.
	{
		name:  "ttl/each-its-own",
		words: "Each claim on a key has its own TTL.",
		needs: Readers | Expiry,
		check: func(e *env, a, b *client) {
			sent := now()
			a.granted(lasting(e.reader("short"), e.short()))
			b.granted(lasting(e.reader("longer"), 2*e.short()))
			a.granted(lasting(e.reader("short again"), e.short()))
			b.lapses(e.exclusive("writer"), sent, 2*e.short())
		},
	},
	// Servers that count in seconds would round the TTL to something else. The caller must
	// learn of the limit, rather than rely on a lease that the store cannot keep.
	{
		name:  "ttl/too-short",
		words: "A TTL below the minimum of the store is ErrInvalid, and nothing is kept.",
		when:  func(h Harness) bool { return h.MinTTL > 0 },
		check: func(e *env, a, b *client) {
			claim := waiting(lasting(e.exclusive("too short"), e.harness.MinTTL/2))
			a.invalid(claim)
			b.granted(e.exclusive("next"))
		},
	},
	// A minimum is a promise. The rule catches a claim that has expired before its grant
	// arrives, because of rounding or a slow clock.
	{
		name:  "ttl/shortest",
		words: "The store keeps the shortest TTL that it accepts.",
		needs: Expiry,
		check: func(e *env, a, b *client) {
			ttl := max(e.harness.MinTTL, time.Millisecond)
			short, sent := lasting(e.exclusive("short"), ttl), now()
			// The claim may have expired before every part of the store had granted it.
			if grant := a.acquire(short); !grant.OK && time.Since(sent) < ttl {
				e.failf("Acquire of %s was refused%s", show(short), because(grant))
			}
			b.lapses(lasting(e.exclusive("next"), ttl), sent, ttl)
		},
	},
	// Large numbers overflow milliseconds in 32 bits, or mean a date to some servers:
	// Memcached reads more than 30 days as a moment in 1970.
	{
		name:  "ttl/very-long",
		words: "A TTL of a month is kept like every TTL.",
		check: func(e *env, a, b *client) {
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
