package drivertest

import (
	"time"
)

// renewRules are about Renew, which prolongs a live claim and does nothing else. Most of
// the rules forbid a renewal to bring a claim back.
var renewRules = []rule{
	// Long work relies on renewals every third of the TTL. A store that checks the claim
	// without prolonging it loses the lock under a healthy holder.
	{
		name:  "renew/keeps",
		words: "Renew lets a claim stand for its TTL from then on.",
		needs: Expiry,
		check: renewing,
	},
	// The engine may ask for a different TTL than the Acquire. A store that remembers the
	// first TTL ends the claim too early.
	{
		name:  "renew/longer",
		words: "Renew gives the TTL of the renewal, even if it is longer than before.",
		needs: Expiry,
		check: func(e *env, a, b *client) {
			e.undisturbed(func() bool {
				key := e.anotherKey()
				claim := on(key, lasting(e.exclusive("renewed"), e.short()))
				asked := now()
				a.granted(claim)
				sent := now()
				claim.TTL = 3 * e.short()
				if err := a.renew(claim)[0]; err != nil {
					return e.late(asked, err)
				}
				b.lapses(on(key, e.exclusive("next")), sent, claim.TTL)
				return true
			})
		},
	},
	// A caller that shortens a lease wants the key free sooner after a crash. A store that
	// takes the maximum keeps the key locked.
	{
		name:  "renew/shorter",
		words: "Renew gives the TTL of the renewal, even if it is shorter than before.",
		needs: Expiry,
		check: func(e *env, a, b *client) {
			claim := a.takes("shortened")
			sent := now()
			a.kept(lasting(claim, e.short()))
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// A renewal may arrive after the claim has ended. A store that writes unconditionally
	// turns the renewal into a claim that no process knows.
	{
		name:  "renew/creates-nothing",
		words: "Renew of an unknown claim returns ErrLost, and creates nothing.",
		check: func(e *env, a, b *client) {
			stranger := e.exclusive("never asked for")
			a.lost(stranger)
			holder := b.takes("holder")
			b.ended(holder)
			a.nothing(stranger)
		},
	},
	// Only Acquire with Wait asks for a place. A place made by a renewal would be granted to
	// a caller that does not wait.
	{
		name:  "renew/queues-nothing",
		words: "Renew never queues a claim.",
		check: func(e *env, a, b *client) {
			holder, stranger := a.takes("holder"), waiting(e.exclusive("never asked for"))
			b.lost(stranger)
			a.ended(holder)
			a.granted(e.exclusive("next"))
			b.lost(stranger)
			b.nothing(stranger)
		},
	},
	// The core confirms a pushed grant by a renewal. A nil for a claim that only waits would
	// make the waiter a second holder.
	{
		name:  "renew/of-waiting",
		words: "Renew of a waiting claim does not report the claim as held.",
		check: func(e *env, a, b *client) {
			holder, waiter := a.takes("holder"), b.waits("waiter")
			if err := b.renew(waiter)[0]; err == nil {
				e.failf("Renew of %s returned nil while %s held the key", show(waiter), show(holder))
			}
			a.kept(holder)
		},
	},
	// The holder has been told of the loss, and a later holder may have come and gone. A
	// revived claim would hold the key with an outdated token.
	{
		name:  "renew/revives-nothing",
		words: "Renew never revives an expired claim, whether the key was acquired since or not.",
		needs: Expiry,
		check: revives,
	},
	// A renewal in flight may arrive after the release of the same claim. The key would stay
	// locked for a TTL although its owner has left.
	{
		name:  "renew/after-release",
		words: "Renew never revives a released claim.",
		check: func(e *env, a, b *client) {
			claim, next := a.takes("released"), e.exclusive("next")
			a.ended(claim)
			a.lost(claim)
			b.granted(next)
			a.lost(claim)
			b.kept(next)
		},
	},
	// A store that sets the expiry of the key, and not of the claim, lets a stranger keep
	// the lock of a dead process alive.
	{
		name:  "renew/only-the-owner",
		words: "Renew of one claim does not prolong another claim on the same key.",
		needs: Expiry,
		check: func(e *env, a, b *client) {
			sent := now()
			holder := lasting(e.exclusive("holder"), e.short())
			a.granted(holder)
			b.lost(e.exclusive("stranger"))
			b.lapses(e.exclusive("next"), sent, e.short())
		},
	},
	// The holder passes its token to the data once. A new token by a renewal would make the
	// fence refuse the holder's own writes.
	{
		name:  "renew/keeps-the-fence",
		words: "A renewed claim keeps its token.",
		check: func(e *env, a, _ *client) {
			claim := e.exclusive("renewed")
			before := a.granted(claim).Fence
			a.kept(claim)
			if after := a.granted(claim).Fence; after != before {
				e.failf("token %d before Renew, %d after it", before, after)
			}
		},
	},
}

// renewing renews five times at a third of the TTL, as the core does, and then stops. The
// claim has to end a TTL after the last renewal.
func renewing(e *env, a, b *client) {
	e.undisturbed(func() bool {
		claim := on(e.anotherKey(), lasting(e.exclusive("renewed"), e.short()))
		sent := now()
		a.granted(claim)
		for range 5 {
			<-time.After(e.short() / 3)
			before := sent
			sent = now()
			if err := a.renew(claim)[0]; err != nil {
				return e.late(before, err)
			}
		}
		b.lapses(on(claim.Key, e.exclusive("next")), sent, e.short())
		return true
	})
}

// late judges the error of a Renew. If the last request that let the claim stand was sent
// less than a TTL ago, the store is at fault. Otherwise this machine was too slow, and the
// steps must be repeated.
func (e *env) late(sent time.Time, err error) (inTime bool) {
	if since := time.Since(sent); since < e.short()-e.slack() {
		e.failf("Renew returned %v only %v after the claim was given %v", told(err), since, e.short())
	}
	return false
}

// revives renews an expired claim while the next claim holds, and after the next claim has
// left. Either renewal could bring the claim back.
func revives(e *env, a, b *client) {
	claim, next := lasting(e.exclusive("run out"), e.short()), e.exclusive("next")
	sent := now()
	a.granted(claim)
	if e.harness.Bubble {
		// Only in a bubble is it certain when the claim has expired.
		untouched := on(e.key+"/untouched", lasting(e.exclusive("run out, nobody came"), e.short()))
		a.granted(untouched)
		<-time.After(e.short())
		a.lost(untouched)
		b.granted(on(untouched.Key, next))
	}
	b.lapses(next, sent, e.short())
	a.lost(claim)
	b.kept(next)
	b.ended(next)
	a.lost(claim)
	b.granted(e.exclusive("after both"))
}
