package drivertest

import (
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

var pushRules = []rule{
	{
		name:  "push/ttl",
		words: "The TTL of a grant that comes with a wake counts from the sending of the claim's last Acquire, and holds.",
		needs: Watch,
		check: pushedGrant,
	},
	{
		name:  "push/is-the-grant",
		words: "A grant that comes with a wake is the one that asking again gives.",
		needs: Watch,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, waiter := e.exclusive("holder"), waiting(e.exclusive("waiter"))
			waiter.Span = 8
			first := a.granted(holder)
			w := b.line(waiter)
			a.ended(holder)
			pushed := w.granted()
			again := b.granted(waiter)
			if again.Fence != pushed.Fence || max(again.Span, 1) != max(pushed.Span, 1) {
				e.failf("the wake brought token %d and %d in all, asking again %d and %d", pushed.Fence, pushed.Span, again.Fence, again.Span)
			}
			if e.has(Tokens) && pushed.Fence <= last(first) {
				e.failf("the wake brought token %d after one that ended with %d", pushed.Fence, last(first))
			}
		}),
	},
	{
		name:  "push/floor",
		words: "If grants come with wakes, the Floor of a refusal is no less than any token given before, and less than the one that comes.",
		needs: Watch | Tokens,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, waiter := e.exclusive("holder"), waiting(e.exclusive("waiter"))
			holder.Span = 8
			given := last(a.granted(holder))
			if e.has(Slots) {
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

func pushedGrant(e *env) {
	a, b := e.client(), e.client()
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
