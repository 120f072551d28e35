package drivertest

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// releaseRules are about Release, which ends the named claim, and only this claim.
var releaseRules = []rule{
	// The next caller may ask in the same millisecond. A store that frees the key lazily, or
	// after a notification, slows every hand-over.
	{
		name:  "release/frees",
		words: "Release ends a claim at once.",
		check: func(e *env, a, b *client) {
			for range 3 {
				for _, c := range []*client{a, b} {
					claim := c.takes("next")
					c.ended(claim)
				}
			}
		},
	},
	// Only the id gives the right to release. A store that deletes the record of the key
	// ends the lock of a stranger.
	{
		name:  "release/only-the-owner",
		words: "Release of a claim that does not hold returns ErrLost, and does not affect the holder.",
		check: func(e *env, a, b *client) {
			holder := e.exclusive("holder")
			a.nothing(e.exclusive("on a free key"))
			a.granted(holder)
			a.nothing(e.exclusive("stranger, same client"))
			b.nothing(e.exclusive("stranger, other client"))
			b.refused(e.exclusive("other"))
			a.kept(holder)
		},
	},
	// The core repeats a release whose answer was lost. By then the key may have a new
	// holder.
	{
		name:  "release/twice",
		words: "A second Release of the same claim returns ErrLost, and does not affect the next holder.",
		check: func(e *env, a, b *client) {
			claim, next := a.takes("first"), e.exclusive("next")
			a.ended(claim)
			a.nothing(claim)
			b.granted(next)
			a.nothing(claim)
			a.refused(e.exclusive("other"))
			b.kept(next)
		},
	},
	// A paused process releases after its lease has ended. The classic mistake is a delete
	// without a look at the id, which frees the lock of the next holder.
	{
		name:  "release/after-expiry",
		words: "Release of an expired claim returns ErrLost, and does not affect the next holder.",
		needs: Expiry,
		check: func(e *env, a, b *client) {
			claim, next := lasting(e.exclusive("run out"), e.short()), e.exclusive("next")
			sent := now()
			a.granted(claim)
			b.lapses(next, sent, e.short())
			a.nothing(claim)
			a.refused(e.exclusive("other"))
			b.kept(next)
		},
	},
	// Readers and slots leave one by one. A store that drops the key with the first release
	// lets a writer in beside readers.
	{
		name:  "release/one-of-several",
		words: "Release ends only the named claim, and no second claim on the same key.",
		needs: Readers,
		check: func(e *env, a, b *client) {
			first, second := e.reader("first"), e.reader("second")
			a.granted(first)
			b.granted(second)
			a.ended(first)
			a.lost(first)
			b.kept(second)
			a.refused(e.exclusive("writer"))
		},
	},
	// The waiter gave up. A store that releases only holders would later grant the key to
	// nobody.
	{
		name:  "release/waiting",
		words: "Release ends a waiting claim: the claim is not granted afterwards.",
		check: swift(func(e *env, a, b *client) {
			holder, waiter := a.takes("holder"), b.waits("gives up")
			if err := b.release(waiter)[0]; err != nil && (e.has(Queue) || !errors.Is(err, driver.ErrLost)) {
				e.failf("Release of %s returned %v", show(waiter), told(err))
			}
			a.ended(holder)
			a.granted(e.exclusive("next"))
			b.lost(waiter)
		}),
	},
}

// lateRules are about Release.Late: the core gave up on an Acquire that may still be on
// its way. The store remembers the id, and refuses the late request.
var lateRules = []rule{
	// The caller gave up, so the core released a claim whose Acquire may still be on its
	// way. If the late Acquire were granted, the key would be blocked for a TTL.
	{
		name:  "late/after-holding",
		words: "After a Release with Late, a late Acquire with the same id is refused.",
		needs: Tombstones,
		check: whileRefused(func(e *env, a, b *client) {
			claim := a.takes("released")
			a.ends(late(claim))
			a.refused(claim)
			b.refused(claim)
			b.granted(e.exclusive("next"))
		}),
	},
	// The two requests may travel over different connections. A store that remembers only
	// ids it has granted misses exactly the request that the rule is for.
	{
		name:  "late/before-arrival",
		words: "A Release with Late may overtake its Acquire: the Acquire is refused although the store had not seen its id.",
		needs: Tombstones,
		check: whileRefused(func(e *env, a, b *client) {
			claim := e.exclusive("overtaken")
			if err := a.releases(late(claim))[0]; !errors.Is(err, driver.ErrLost) {
				e.failf("Release of %s with Late returned %v, not ErrLost", show(claim), told(err))
			}
			a.refused(claim)
			a.lost(claim)
			b.granted(e.exclusive("next"))
		}),
	},
	// A waiter asks again and again, so one of its requests is often on its way when the
	// waiter gives up. A queued ghost would be granted later and block the key.
	{
		name:  "late/while-waiting",
		words: "After a Release with Late of a waiting claim, a late Acquire is refused and not queued.",
		needs: Tombstones,
		check: whileRefused(func(e *env, a, b *client) {
			holder, claim := a.takes("holder"), b.waits("gave up")
			b.releases(late(claim))
			b.refused(claim)
			a.ended(holder)
			b.refused(claim)
			next := a.takes("next")
			b.refused(claim)
			a.ended(next)
			a.granted(e.exclusive("after next"))
		}),
	},
	// The core bounds a call by one second, and a request may linger in a network or a busy
	// server. Ten seconds cover both with room; the TTL of the claim does not matter.
	{
		name:  "late/for-ten-seconds",
		words: "A Release with Late is remembered for ten seconds.",
		needs: Tombstones,
		check: func(e *env, a, _ *client) {
			if !e.harness.Bubble {
				// Ten real seconds would prove little more: two show that the store
				// remembers for longer than one request lasts.
				a.remembers(2*time.Second, time.Second)
				return
			}
			a.remembers(10*time.Second-time.Nanosecond, time.Second)
			a.remembers(10*time.Second-time.Nanosecond, long)
		},
	},
	// The refusal belongs to one id. A store that marks the key as a whole would refuse the
	// next caller for ten seconds.
	{
		name:  "late/only-its-own",
		words: "A Release with Late affects no other claim and no other key.",
		needs: Tombstones,
		check: func(e *env, a, b *client) {
			claim := a.takes("released")
			a.ends(late(claim))
			other := waiting(e.exclusive("other"))
			b.granted(other)
			b.ended(other)
			a.granted(on(e.key+"/other", e.exclusive("other key")))
		},
	},
}

// late is the release of a claim that may overtake an Acquire.
func late(claim driver.Ask) driver.Release {
	return driver.Release{Claim: claim.Claim, Late: true}
}

// remembers checks that a late Acquire is still refused when span has passed since the
// Release of a claim whose TTL was ttl.
func (c *client) remembers(span, ttl time.Duration) {
	c.undisturbed(func() bool {
		claim := on(c.anotherKey(), lasting(c.exclusive("released"), max(ttl, c.harness.MinTTL)))
		asked := now()
		c.granted(claim)
		released := now()
		err := c.releases(late(claim))[0]
		if time.Since(asked) >= claim.TTL {
			return false
		}
		if err != nil {
			c.failf("Release of %s returned %v", show(claim), told(err))
		}
		<-time.After(span)
		if grant := c.acquire(claim); grant.OK && time.Since(released) < 10*time.Second {
			c.failf("%s was granted %v after its release", show(claim), time.Since(released))
		}
		return true
	})
}
