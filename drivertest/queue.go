package drivertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

var queueRules = []rule{
	{
		name:  "queue/eventually",
		words: "A waiting claim that keeps asking is granted once nothing stands in its way.",
		check: func(e *env) {
			a, b := e.client(), e.client()
			holder, waiter := e.exclusive("holder"), waiting(e.exclusive("waiter"))
			a.granted(holder)
			b.refused(waiter)
			a.ended(holder)
			b.granted(waiter)
			a.refused(e.exclusive("other"))
			b.kept(waiter)
		},
	},
	{
		name:  "queue/first-come-first-served",
		words: "Claims that wait are granted in the order in which they first asked.",
		needs: Queue,
		check: func(e *env) { e.unlessLate(func() { swift(firstCome)(e) }) },
	},
	{
		name:  "queue/no-barging",
		words: "A claim is refused while another waits in the queue before it, though its weight would fit.",
		needs: Queue,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, waiter := e.exclusive("holder"), waiting(e.exclusive("waiter"))
			a.granted(holder)
			b.refused(waiter)
			a.ended(holder)
			a.refused(e.exclusive("trying"))
			a.refused(waiting(e.exclusive("behind")))
			b.granted(waiter)
		}),
	},
	{
		name:  "queue/try-keeps-no-place",
		words: "A claim that asks without Wait gets no place in the queue.",
		needs: Queue,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, tried, waiter := e.exclusive("holder"), e.exclusive("trying"), waiting(e.exclusive("waiter"))
			a.granted(holder)
			b.refused(tried)
			a.refused(waiter)
			a.ended(holder)
			b.refused(tried)
			a.granted(waiter)
			a.ended(waiter)
			a.granted(e.exclusive("next"))
		}),
	},
	{
		name:  "queue/after-expiry",
		words: "When a claim runs out, the first in the queue is next.",
		needs: Queue | Expiry,
		check: afterExpiry,
	},
	{
		name:  "queue/cancelled",
		words: "A waiting claim that is released makes way for those behind it.",
		needs: Queue,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, first, second := e.exclusive("holder"), waiting(e.exclusive("first")), waiting(e.exclusive("second"))
			a.granted(holder)
			a.refused(first)
			b.refused(second)
			a.ended(first)
			a.ended(holder)
			b.granted(second)
		}),
	},
	{
		name:  "queue/cancelled-at-its-turn",
		words: "A waiting claim that is released when its turn has come passes it on.",
		needs: Queue,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			for _, overtakes := range []bool{false, true} {
				holder, first, second := e.exclusive("holder"), waiting(e.exclusive("first")), waiting(e.exclusive("second"))
				a.granted(holder)
				a.refused(first)
				b.refused(second)
				a.ended(holder)
				a.ends(driver.Release{Claim: first.Claim, Late: overtakes})
				b.granted(second)
				a.lost(first)
				b.ended(second)
			}
		}),
	},
	{
		name:  "queue/writer-before-later-readers",
		words: "A reader does not pass a writer that waits, so that readers cannot starve it.",
		needs: Queue | Readers,
		check: swift(writerNotStarved),
	},
	{
		name:  "queue/readers-behind-a-cancelled-writer",
		words: "Readers behind a writer that gives up join those that hold.",
		needs: Queue | Readers,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			a.granted(e.reader("holds"))
			writer := waiting(e.exclusive("writer"))
			readers := []driver.Ask{waiting(e.reader("first behind")), waiting(e.reader("second behind"))}
			a.refused(writer)
			b.refused(readers[0])
			b.refused(readers[1])
			a.ended(writer)
			b.granted(readers[1])
			b.granted(readers[0])
		}),
	},
	{
		name:  "queue/heavy-head",
		words: "A light claim does not pass a heavy one that waits for more room.",
		needs: Queue | Slots,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, heavy, light := e.slot("holds 2 of 3", 2, 3), waiting(e.slot("2 of 3", 2, 3)), waiting(e.slot("1 of 3", 1, 3))
			a.granted(holder)
			b.refused(heavy)
			a.refused(light)
			a.refused(e.slot("trying 1 of 3", 1, 3))
			a.ended(holder)
			b.granted(heavy)
			a.granted(light)
		}),
	},
}

func firstCome(e *env) {
	clients := []*client{e.client(), e.client(), e.client()}
	holder := e.exclusive("holder")
	clients[0].granted(holder)
	var line []driver.Ask
	for i := range 6 {
		waiter := waiting(e.exclusive(fmt.Sprint("waiter ", i+1)))
		clients[i%3].refused(waiter)
		line = append(line, waiter)
	}
	clients[0].ended(holder)
	for i, first := range line {
		// Every later waiter asks before the first, and the last waiter asks before all.
		for j := len(line) - 1; j > i; j-- {
			clients[j%3].refused(line[j])
		}
		clients[i%3].granted(first)
		clients[i%3].ended(first)
	}
}

func afterExpiry(e *env) {
	a, b := e.client(), e.client()
	e.undisturbed(func() bool {
		key := e.anotherKey()
		first, second := on(key, waiting(e.exclusive("first"))), on(key, waiting(e.exclusive("second")))
		sent := now()
		a.granted(on(key, lasting(e.exclusive("runs out"), e.short())))
		asked := now()
		if b.acquire(first).OK {
			return false
		}
		for {
			early := a.acquire(second)
			if time.Since(asked) >= first.Alive() {
				return false
			}
			if early.OK {
				e.failf("%s was granted before %s, which was before it in the queue", show(second), show(first))
			}
			asked = now()
			if b.acquire(first).OK {
				return true
			}
			if passed := time.Since(sent); passed > 5*e.short()+patience {
				e.failf("%s was still refused %v after the request that gave the claim in its way %v", show(first), passed, e.short())
			}
			<-time.After(e.short() / 20)
		}
	})
}

func writerNotStarved(e *env) {
	a, b := e.client(), e.client()
	first := e.reader("first reader")
	a.granted(first)
	writer := waiting(e.exclusive("writer"))
	b.refused(writer)
	behind := []driver.Ask{waiting(e.reader("reader behind")), waiting(e.reader("another behind"))}
	for _, reader := range slices.Concat(behind, []driver.Ask{e.reader("trying reader")}) {
		a.refused(reader)
	}
	a.kept(first)
	a.ended(first)
	for _, reader := range behind {
		a.refused(reader)
	}
	b.granted(writer)
	b.ended(writer)
	for _, reader := range behind {
		a.granted(reader)
	}
}
