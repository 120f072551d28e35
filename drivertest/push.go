package drivertest

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// pushRules are about wake-ups that carry the grant, which save the waiter a round trip.
// The message may be late, so the rules are about what is still true on arrival.
var pushRules = []rule{
	// The message may arrive late, so only a moment of the waiter's own clock is safe. A TTL
	// that counts from the push lets the holder rely on an expired claim.
	{
		name:  "push/ttl",
		words: "The TTL of a pushed grant counts from the sending of the claim's last Acquire, and the claim stands that long.",
		needs: Watch,
		check: pushedGrant,
	},
	// The waiter uses the pushed token at once. If the store then gives the claim a
	// different token, two holders can share a token.
	{
		name:  "push/is-the-grant",
		words: "A pushed grant is the grant that a new request returns.",
		needs: Watch,
		check: swift(func(e *env, a, b *client) {
			holder, waiter := e.exclusive("holder"), waiting(e.exclusive("waiter"))
			waiter.Span = 8
			first := a.granted(holder)
			w := b.line(waiter)
			a.ended(holder)
			pushed := w.granted()
			// The core asks like this if it doubts the push, and must not get a second grant.
			again := b.granted(waiter)
			if again.Fence != pushed.Fence || max(again.Span, 1) != max(pushed.Span, 1) {
				e.failf("the wake brought token %d and %d in all, asking again %d and %d", pushed.Fence, pushed.Span, again.Fence, again.Span)
			}
			if e.has(Tokens) && pushed.Fence <= last(first) {
				e.failf("the wake brought token %d after one that ended with %d", pushed.Fence, last(first))
			}
		}),
	},
	// A push may be overtaken by a later refusal of the same claim. The core drops a push at
	// or below the Floor, so a low Floor revives an old grant, and a high Floor drops a good
	// one.
	{
		name:  "push/floor",
		words: "If a store pushes grants, the Floor of a refusal is at least every earlier token, and below the token of the next push.",
		needs: Watch | Tokens,
		check: swift(func(e *env, a, b *client) {
			holder, waiter := e.exclusive("holder"), waiting(e.exclusive("waiter"))
			holder.Span = 8
			given := last(a.granted(holder))
			if e.has(Slots) {
				// The slot that ends first is the older, so the floor must look at all holders.
				a.ended(holder)
				holder = e.slot("second", 1, 2)
				a.granted(lasting(e.slot("first", 1, 2), holder.TTL/2))
				given = last(a.granted(holder))
				waiter = waiting(e.slot("waiter", 1, 2))
			}
			b.refused(waiter)
			w := b.watch(waiter)
			defer w.stop()
			floor := b.refused(waiter).Floor
			a.ended(holder)
			select {
			case g := <-w.wakes:
				if g.OK && (floor < given || floor >= g.Fence) {
					e.failf("after token %d, %s was refused with floor %d; the wake brought token %d", given, show(waiter), floor, g.Fence)
				}
			case <-time.After(patience):
				e.failf("%s was not woken by the release", show(waiter))
			}
		}),
	},
}

// pushedGrant waits for a large part of Alive between the last request and the release. A
// TTL that counts from the push is then too long by as much.
func pushedGrant(e *env, a, b *client) {
	e.undisturbed(func() bool {
		key := e.anotherKey()
		holder := on(key, e.exclusive("holder"))
		waiter := on(key, waiting(lasting(e.exclusive("waiter"), e.short())))
		a.granted(holder)
		b.refused(waiter)
		w := b.watch(waiter)
		defer w.stop()
		asked := now()
		b.refused(waiter)
		answered := now()
		// The longer the wait, the larger the error of a TTL that counts from now.
		<-time.After(waiter.Alive() * 3 / 5)
		waited := time.Since(answered)
		a.ended(holder)
		if time.Since(asked) >= waiter.Alive() {
			return false // The claim may have lost its place before.
		}
		var g driver.Grant
		select {
		case g = <-w.wakes:
		case <-time.After(patience):
			e.failf("%s was not woken by the release", show(waiter))
		}
		if time.Since(asked) >= waiter.Alive() {
			return false
		}
		if !g.OK || g.TTL == 0 && !e.has(Expiry) {
			return true // The claim is granted when it asks, or stands until its session ends.
		}
		if g.TTL < waited+waiter.Alive()-e.slack() {
			e.failf("the wake brought a TTL of %v, though its last Acquire was answered %v before and it stands for %v from now", g.TTL, waited, waiter.Alive())
		}
		b.lapses(on(key, e.exclusive("next")), asked, g.TTL)
		return true
	})
}
