package drivertest

import (
	"errors"

	"github.com/holdfast-go/holdfast/driver"
)

// featureRules are about what a store may lack. The store has to refuse honestly, and keep
// nothing of the refused request.
var featureRules = []rule{
	// An optional interface is easily lost when a type wraps the store: the code still
	// compiles, and waiters quietly poll. The rule makes the loss a failure.
	{
		name:  "feature/interfaces",
		words: "The store has exactly the optional interfaces that its harness expects.",
		check: func(e *env, a, _ *client) {
			_, watches := a.store.(driver.Watcher)
			_, notifies := a.store.(driver.Notifier)
			_, inspects := a.store.(driver.Inspector)
			for feature, is := range map[Feature]bool{Watch: watches, Notify: notifies, Inspect: inspects} {
				if is != e.has(feature) {
					e.failf("%v: the harness expects %v, the store says %v", feature, e.has(feature), is)
				}
			}
		},
	},
	// An honest refusal lets the caller choose an exclusive lock. Treating a reader as an
	// exclusive claim, or as a claim beside a writer, would break a promise silently.
	{
		name:  "feature/no-readers",
		words: "A store without readers refuses a reader with ErrInvalid and keeps nothing of the request.",
		when:  func(h Harness) bool { return h.Lacks&Readers != 0 },
		check: func(e *env, a, b *client) {
			a.invalid(waiting(e.reader("reader")))
			b.granted(e.exclusive("next"))
		},
	},
	// The same as for readers: a majority of servers cannot count slots, so Redlock has to
	// say so before a program relies on a semaphore.
	{
		name:  "feature/no-slots",
		words: "A store without slots refuses a slot, and the upgrade of a reader, with ErrInvalid and keeps nothing of the request.",
		when:  func(h Harness) bool { return h.Lacks&Slots != 0 },
		check: func(e *env, a, b *client) {
			a.invalid(waiting(e.slot("1 of 2", 1, 2)))
			a.invalid(waiting(e.slot("2 of 2", 2, 2)))
			a.invalid(waiting(e.upgrade("upgrade")))
			b.granted(e.exclusive("next"))
		},
	},
	// A TTL of 0 tells the core that the claim stands until a release or a reported loss.
	// Any other TTL would end a lock that the store still keeps.
	{
		name:  "feature/no-expiry",
		words: "A store whose claims do not expire grants a TTL of 0.",
		when:  func(h Harness) bool { return h.Lacks&Expiry != 0 },
		check: func(e *env, a, _ *client) {
			if g := a.granted(e.exclusive("holder")); g.TTL != 0 {
				e.failf("granted for %v", g.TTL)
			}
		},
	},
	// Lock.Fence returns 0 then, and a fence refuses to work with 0. An invented number,
	// such as a counter of the process, would pass the fence and protect nothing.
	{
		name:  "feature/no-tokens",
		words: "A store without tokens grants token 0 and no span.",
		when:  func(h Harness) bool { return h.Lacks&Tokens != 0 },
		check: func(e *env, a, _ *client) {
			claim := e.exclusive("holder")
			claim.Span = 8
			if g := a.granted(claim); g.Fence != 0 || g.Span > 1 {
				e.failf("granted token %d and %d of them", g.Fence, g.Span)
			}
		},
	},
	// MinHold needs a claim that outlives its client. The store must refuse the option
	// rather than pretend, and the refused renewal must not cost the claim.
	{
		name:  "feature/no-roam",
		words: "A store whose claims are bound to their clients answers Leave with ErrInvalid, and keeps the claim as it is.",
		when:  func(h Harness) bool { return h.Lacks&Roam != 0 },
		check: func(e *env, a, b *client) {
			claim := a.takes("would be left")
			if err := a.renewals(leave(claim))[0]; !errors.Is(err, driver.ErrInvalid) {
				e.failf("Renew of %s with Leave returned %v, not ErrInvalid", show(claim), told(err))
			}
			a.kept(claim)
			b.refused(e.exclusive("other"))
			a.ended(claim)
			b.granted(e.exclusive("next"))
		},
	},
	// Redlock raises tokens of its nodes until a majority agrees. A node that ignores the
	// request would let a later grant have a smaller token.
	{
		name:  "feature/no-raise",
		words: "A store that cannot raise tokens answers requested tokens with ErrInvalid. A refused Acquire leaves nothing, and a refused Renew keeps the claim as it was.",
		when:  func(h Harness) bool { return h.Lacks&(Tokens|Raise) != 0 },
		check: func(e *env, a, b *client) {
			claim := e.exclusive("asks for a token")
			claim.Fence = 1
			a.invalid(waiting(claim))
			holder := e.exclusive("holder")
			before := b.granted(holder).Fence
			b.unraised(holder, before+ahead)
			b.kept(holder)
			if after := b.granted(holder).Fence; after != before {
				e.failf("token %d before it was asked to be raised, %d after", before, after)
			}
		},
	},
}
