package drivertest

import "time"

// placeRules are about how long a place in the queue lasts.
var placeRules = []rule{
	// The heartbeat of the core is the only sign of life of a waiter. A place that expires
	// from the first request makes long waits unfair.
	{
		name:  "place/asking-keeps-it",
		words: "A waiting claim that asks again in time keeps its place, however long it waits.",
		needs: Queue,
		check: within(alive/10, long, keepsPlace),
	},
	// A waiter may be killed. Without an end of the place, one dead waiter at the head of
	// the queue blocks the key for ever.
	{
		name:  "place/silent-loses-it",
		words: "A waiting claim that stops asking keeps its place for Alive, and then blocks nobody.",
		needs: Queue,
		check: silentWaiter,
	},
	// The store may grant the claim on its own when the turn comes, but the waiter may be
	// dead. Only a confirmed claim may stand for its whole TTL.
	{
		name:  "place/silent-at-its-turn",
		words: "If the turn of a silent waiter comes, the claim blocks nobody for longer than Alive, however long its TTL.",
		needs: Queue,
		check: func(e *env, a, b *client) {
			holder, silent := a.takes("holder"), waiting(e.exclusive("silent"))
			asked := now()
			b.refused(silent)
			a.ended(holder)
			next := waiting(e.exclusive("next"))
			b.lapses(next, asked, silent.Alive())
		},
	},
	// The renewal is the confirmation of a pushed grant. A store that keeps the short limit
	// of a place loses the lock of a living holder.
	{
		name:  "place/confirmed",
		words: "A claim that was granted while waiting stands for its TTL once its owner has renewed it.",
		needs: Queue,
		check: func(e *env, a, b *client) {
			e.undisturbed(func() bool {
				key := e.anotherKey()
				holder, waiter := on(key, e.exclusive("holder")), on(key, waiting(e.exclusive("waiter")))
				a.granted(holder)
				asked := now()
				b.refused(waiter)
				a.ended(holder)
				b.granted(waiter)
				err := b.renew(waiter)[0]
				if time.Since(asked) > waiter.Alive() {
					return false
				}
				if err != nil {
					b.failf("Renew of %s returned %v", show(waiter), told(err))
				}
				<-time.After(waiter.Alive())
				a.refused(on(key, e.exclusive("too early")))
				b.kept(waiter)
				return true
			})
		},
	},
}

// keepsPlace lets two waiters ask for three times Alive, longer than a place without
// renewal can last. The second waiter then asks first, and must not pass.
func keepsPlace(e *env, a, b *client) {
	e.undisturbed(func() bool {
		key := e.anotherKey()
		holder := on(key, e.exclusive("holder"))
		first := on(key, waiting(lasting(e.exclusive("first"), e.short())))
		second := on(key, waiting(lasting(e.exclusive("second"), e.short())))
		a.granted(holder)
		start, asked := now(), now()
		for time.Since(start) < 3*first.Alive() {
			before := asked
			asked = now()
			a.refused(first)
			b.refused(second)
			if time.Since(before) >= first.Alive() {
				return false
			}
			<-time.After(first.Alive() / 3)
		}
		a.ended(holder)
		early, turn := b.acquire(second), a.acquire(first)
		if time.Since(asked) >= first.Alive() {
			return false
		}
		if early.OK || !turn.OK {
			e.failf("%s was granted before %s, which kept asking", show(second), show(first))
		}
		return true
	})
}

// silentWaiter keeps the second waiter asking while the place of the first waiter expires.
// Without a bubble the expiry may be late, so the rule only bounds the wait.
func silentWaiter(e *env, a, b *client) {
	holder, silent := e.exclusive("holder"), waiting(lasting(e.exclusive("silent"), e.short()))
	next := waiting(lasting(e.exclusive("next"), e.short()))
	a.granted(holder)
	asked := now()
	a.refused(silent)
	for time.Since(asked) <= silent.Alive() {
		b.refused(next)
		<-time.After(next.Alive() / 4)
	}
	a.ended(holder)
	if e.harness.Bubble {
		// Only in a bubble is it certain that the place was lost before.
		b.granted(next)
	}
	b.eventually(next, next.Alive())
}
