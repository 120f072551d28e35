package drivertest

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// queueRules are about the order of waiters: FIFO, with no claim passing an earlier one.
var queueRules = []rule{
	// Even a store without a queue must not forget the waiter. A record of a former refusal
	// must not refuse the claim when the key is free.
	{
		name:  "queue/eventually",
		words: "A waiting claim that keeps asking is granted once no claim is in its way.",
		check: func(e *env, a, b *client) {
			holder, waiter := a.takes("holder"), b.waits("waiter")
			a.ended(holder)
			b.granted(waiter)
			a.refused(e.exclusive("other"))
			b.kept(waiter)
		},
	},
	// FIFO order is the promise to users of a fair lock. Later waiters ask first in each
	// round, so a store that grants by the order of the last request fails.
	{
		name:  "queue/first-come-first-served",
		words: "Waiting claims are granted in the order of their first requests.",
		needs: Queue,
		check: within(callLimit, alive, firstCome),
	},
	// A newcomer that finds the key free would starve waiters on a busy key. TryLock gets no
	// exception.
	{
		name:  "queue/no-barging",
		words: "A claim is refused while an earlier claim waits, even if its weight would fit.",
		needs: Queue,
		check: swift(func(e *env, a, b *client) {
			holder, waiter := a.takes("holder"), b.waits("waiter")
			a.ended(holder)
			a.refused(e.exclusive("trying"))
			a.refused(waiting(e.exclusive("behind")))
			if g := b.granted(waiter); g.Passed {
				e.failf("%s was granted with Passed, as by a store without a queue", show(waiter))
			}
		}),
	},
	// The caller of TryLock has left after the refusal. A place for it would block real
	// waiters until Alive ends.
	{
		name:  "queue/try-keeps-no-place",
		words: "A claim that asks without Wait gets no place in the queue.",
		needs: Queue,
		check: swift(func(e *env, a, b *client) {
			holder, tried, waiter := a.takes("holder"), e.exclusive("trying"), waiting(e.exclusive("waiter"))
			b.refused(tried)
			a.refused(waiter)
			a.ended(holder)
			b.refused(tried)
			a.granted(waiter)
			a.ended(waiter)
			a.granted(e.exclusive("next"))
		}),
	},
	// A crash must not change the order. A store that drops the record of a key at expiry
	// drops the queue with the holder.
	{
		name:  "queue/after-expiry",
		words: "When a claim expires, the first waiter is next.",
		needs: Queue | Expiry,
		check: afterExpiry,
	},
	// Waits end by time-outs all the time. A place of a caller that left delays everyone
	// behind it by up to three seconds.
	{
		name:  "queue/cancelled",
		words: "A released waiter makes way for the waiters behind.",
		needs: Queue,
		check: swift(func(e *env, a, b *client) {
			holder, first, second := a.takes("holder"), a.waits("first"), b.waits("second")
			a.ended(first)
			a.ended(holder)
			b.granted(second)
		}),
	},
	// The key may already be promised to the waiter that gives up. A store that removes only
	// holders, or only waiters, loses the turn.
	{
		name:  "queue/cancelled-at-its-turn",
		words: "A waiter that is released when its turn has come passes the turn on.",
		needs: Queue,
		check: swift(func(e *env, a, b *client) {
			for _, overtakes := range []bool{false, true} {
				holder, first, second := a.takes("holder"), a.waits("first"), b.waits("second")
				a.ended(holder)
				a.ends(driver.Release{Claim: first.Claim, Late: overtakes})
				b.granted(second)
				a.lost(first)
				b.ended(second)
			}
		}),
	},
	// A process may end its lock and give up waiting in the same moment. A store that reads only the
	// head of the queue for a hand-over does not find the waiter.
	{
		name:  "queue/holder-and-waiter-at-once",
		words: "A holder and a waiter of its key may be released in one call, and the next waiter is granted.",
		needs: Queue,
		check: swift(func(e *env, a, b *client) {
			for _, holderFirst := range []bool{true, false} {
				holder, first, middle, last := a.takes("holder"), b.waits("first"), a.waits("middle"), b.waits("last")
				if holderFirst {
					a.ended(holder, middle)
				} else {
					a.ended(middle, holder)
				}
				b.granted(first)
				a.nothing(middle)
				b.ended(first)
				b.granted(last)
				b.ended(last)
			}
		}),
	},
	// Readers fit beside the readers that hold, so weights alone would let them in for ever.
	// The place in the queue decides first.
	{
		name:  "queue/writer-before-later-readers",
		words: "A reader does not pass a waiting writer, so readers cannot starve writers.",
		needs: Queue | Readers,
		check: swift(writerNotStarved),
	},
	// The writer was the only reason to wait. Readers must not sleep until the first readers
	// have left.
	{
		name:  "queue/readers-behind-a-cancelled-writer",
		words: "Readers behind a cancelled writer join the readers that hold.",
		needs: Queue | Readers,
		check: swift(func(e *env, a, b *client) {
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
	// The first reader holds until the upgrade has ended. Readers that passed the upgrade one
	// after the other would keep both waiting for ever.
	{
		name:  "queue/upgrade",
		words: "An upgrade that waits is granted when one reader is left, and later readers wait until the upgrade has ended.",
		needs: Queue | Readers | Slots,
		check: swift(func(e *env, a, b *client) {
			first, second := e.reader("first reader"), e.reader("second reader")
			upgrade, behind := waiting(e.upgrade("upgrade")), waiting(e.reader("reader behind"))
			a.granted(first)
			b.granted(second)
			a.refused(upgrade)
			b.refused(behind)
			b.refused(e.reader("trying reader"))
			b.ended(second)
			b.refused(behind)
			a.granted(upgrade)
			b.refused(behind)
			a.ended(upgrade)
			b.granted(behind)
			a.kept(first)
		}),
	},
	// If light claims took each freed slot, enough room for the heavy claim would never come
	// together.
	{
		name:  "queue/heavy-head",
		words: "A light claim does not pass a heavy claim that waits for more room.",
		needs: Queue | Slots,
		check: swift(func(e *env, a, b *client) {
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

// firstCome has the waiters ask in the wrong order in every round, the last waiter first.
func firstCome(e *env, a, b *client) {
	clients := []*client{a, b, e.client()}
	holder := a.takes("holder")
	var line []driver.Ask
	for i := range 6 {
		waiter := waiting(e.exclusive(fmt.Sprint("waiter ", i+1)))
		clients[i%3].refused(waiter)
		line = append(line, waiter)
	}
	a.ended(holder)
	for i, first := range line {
		// Every later waiter asks before the first, and the last waiter asks before all.
		for j := len(line) - 1; j > i; j-- {
			clients[j%3].refused(line[j])
		}
		clients[i%3].granted(first)
		clients[i%3].ended(first)
	}
}

// afterExpiry has the second waiter ask just before the first waiter, again and again,
// until the claim in the way has expired.
func afterExpiry(e *env, a, b *client) {
	e.undisturbed(func() bool {
		key := e.anotherKey()
		first, second := on(key, waiting(e.exclusive("first"))), on(key, waiting(e.exclusive("second")))
		sent := now()
		a.granted(on(key, lasting(e.exclusive("runs out"), e.short())))
		asked := now()
		if b.acquire(first).OK {
			if time.Since(sent) >= e.short()-e.slack() {
				return false
			}
			e.failf("%s was granted %v before the end of the claim in its way", show(first), e.short()-time.Since(sent))
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

// writerNotStarved has readers ask before and after the first reader leaves, with Wait and
// without.
func writerNotStarved(e *env, a, b *client) {
	first := e.reader("first reader")
	a.granted(first)
	writer := b.waits("writer")
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
