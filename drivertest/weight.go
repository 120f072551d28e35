package drivertest

import (
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// weightRules are about the central rule of the contract: the weights of live claims stay
// within the limit of a new claim. Locks, read-write locks and semaphores follow from the
// numbers.
var weightRules = []rule{
	// The read-write lock. The rule catches stores that keep a single holder per key, and
	// stores that forget the remaining readers when one reader leaves.
	{
		name:  "weight/readers",
		words: "Readers hold together, and no writer holds beside a reader.",
		needs: Readers,
		check: func(e *env, a, b *client) {
			first, second := e.reader("first reader"), e.reader("second reader")
			a.granted(first)
			b.granted(second)
			b.refused(e.exclusive("writer"))
			a.ended(first)
			a.refused(e.exclusive("writer"))
			b.ended(second)

			writer := a.takes("writer")
			b.refused(e.reader("late reader"))
			a.ended(writer)
			b.granted(e.reader("next reader"))
		},
	},
	// A reader weighs 1 of 2^40. A fixed array, a column of 32 bits of flags or an item of
	// limited size runs full long before that.
	{
		name:  "weight/many-readers",
		words: "A process cannot reach a limit of readers.",
		needs: Readers,
		check: func(e *env, a, b *client) {
			clients := []*client{a, b}
			readers := make([][]driver.Ask, len(clients))
			for i := range 40 {
				r := e.reader(fmt.Sprint("reader ", i))
				clients[i%2].granted(r)
				readers[i%2] = append(readers[i%2], r)
			}
			a.refused(e.exclusive("writer"))
			// One call for each client, as when a process ends: no claim of a large batch may
			// be left out.
			for i, c := range clients {
				c.ended(readers[i]...)
			}
			b.granted(e.exclusive("writer"))
		},
	},
	// A reader becomes a writer without a gap. A store that compares weights with the limit of
	// a writer refuses for ever, since the reader itself stands in the way.
	{
		name:  "weight/upgrade",
		words: "The upgrade of a reader stands beside one reader, and beside nothing else.",
		needs: Readers | Slots,
		check: func(e *env, a, b *client) {
			first, second, upgrade := e.reader("first reader"), e.reader("second reader"), e.upgrade("upgrade")
			a.granted(first)
			b.granted(second)
			a.refused(upgrade)
			b.ended(second)
			a.granted(upgrade)
			for _, other := range []driver.Ask{e.reader("late reader"), e.upgrade("other upgrade"), e.exclusive("writer"), e.slot("1 of 9", 1, 9)} {
				b.refused(other)
			}
			a.kept(first)
			a.kept(upgrade)
			a.ended(upgrade)
			b.granted(e.reader("next reader"))
			a.kept(first)
		},
	},
	// The semaphore. An off-by-one shows as a slot too many or a slot that is never used,
	// also after a release.
	{
		name:  "weight/slots",
		words: "Of slots with a limit of n, exactly n are held at once.",
		needs: Slots,
		check: func(e *env, a, b *client) {
			for _, n := range []int64{1, 2, 5} {
				key := fmt.Sprint(e.key, "/", n)
				slot := func(i int64) driver.Ask { return on(key, e.slot(fmt.Sprintf("slot %d of %d", i+1, n), 1, n)) }
				last := slot(0)
				a.granted(last)
				for i := range n - 1 {
					b.granted(slot(i + 1))
				}
				a.refused(slot(n))
				b.refused(slot(n))
				// A release frees exactly one slot, though its client has no second claim.
				a.ended(last)
				b.granted(slot(n))
				a.refused(slot(n))
			}
		},
	},
	// A claim may take several slots. A store that counts claims, and not weights, lets
	// twice the allowed load in.
	{
		name:  "weight/heavy-slots",
		words: "The weights of the live claims and of the new claim together do not exceed the limit of the new claim.",
		needs: Slots,
		check: func(e *env, a, b *client) {
			six, three, four := e.slot("six", 6, 10), e.slot("three", 3, 10), e.slot("four", 4, 10)
			a.granted(six)
			b.granted(three)
			b.refused(four)
			b.refused(e.slot("two", 2, 10))
			a.granted(e.slot("one", 1, 10))
			b.ended(three)
			b.refused(four)
			a.granted(e.slot("again three", 3, 10))
			a.ended(six)
			b.granted(four)
		},
	},
	// During a deployment two releases may use different limits on one key. The store keeps
	// no limit for the key: every claim gets the limit of its caller.
	{
		name:  "weight/own-limit",
		words: "A claim is measured against its own limit, whatever limits the live claims have.",
		needs: Slots,
		check: func(e *env, a, b *client) {
			a.granted(e.slot("1 of 3", 1, 3))
			b.refused(e.slot("1 of 1", 1, 1))
			b.granted(e.slot("1 of 2", 1, 2))
			b.refused(e.slot("another 1 of 2", 1, 2))
			a.granted(e.slot("another 1 of 3", 1, 3))
			a.refused(e.exclusive("exclusive"))
		},
	},
	// One holder crashes while the next works on. A store with one expiry for the key frees
	// every slot at once.
	{
		name:  "weight/freed-by-expiry",
		words: "A slot or a reader that expires frees only its own weight.",
		needs: Slots | Expiry,
		check: func(e *env, a, b *client) {
			kept := e.slot("kept", 1, 2)
			a.granted(kept)
			sent := now()
			a.granted(lasting(e.slot("running out", 1, 2), e.short()))
			b.lapses(e.slot("next", 1, 2), sent, e.short())
			b.refused(e.slot("one too many", 1, 2))
			a.kept(kept)
		},
	},
}
