package drivertest

import (
	"errors"

	"github.com/holdfast-go/holdfast/driver"
)

var featureRules = []rule{
	{
		name:  "feature/interfaces",
		words: "The store has the optional interfaces that its harness does not say it lacks, and no other.",
		check: func(e *env) {
			store := e.client().store
			_, watches := store.(driver.Watcher)
			_, notifies := store.(driver.Notifier)
			_, inspects := store.(driver.Inspector)
			for feature, is := range map[Feature]bool{Watch: watches, Notify: notifies, Inspect: inspects} {
				if is != e.has(feature) {
					e.failf("%v: the harness expects %v, the store says %v", feature, e.has(feature), is)
				}
			}
		},
	},
	{
		name:  "feature/no-readers",
		words: "A store without readers refuses them as ErrInvalid and keeps nothing of them.",
		when:  func(h Harness) bool { return h.Lacks&Readers != 0 },
		check: func(e *env) {
			a, b := e.client(), e.client()
			a.invalid(waiting(e.reader("reader")))
			b.granted(e.exclusive("next"))
		},
	},
	{
		name:  "feature/no-slots",
		words: "A store without slots refuses them as ErrInvalid and keeps nothing of them.",
		when:  func(h Harness) bool { return h.Lacks&Slots != 0 },
		check: func(e *env) {
			a, b := e.client(), e.client()
			a.invalid(waiting(e.slot("1 of 2", 1, 2)))
			a.invalid(waiting(e.slot("2 of 2", 2, 2)))
			b.granted(e.exclusive("next"))
		},
	},
	{
		name:  "feature/no-expiry",
		words: "A store whose claims do not run out says so by a TTL of 0.",
		when:  func(h Harness) bool { return h.Lacks&Expiry != 0 },
		check: func(e *env) {
			if g := e.client().granted(e.exclusive("holder")); g.TTL != 0 {
				e.failf("granted for %v", g.TTL)
			}
		},
	},
	{
		name:  "feature/no-tokens",
		words: "A store without tokens says so by token 0, and gives no span of them.",
		when:  func(h Harness) bool { return h.Lacks&Tokens != 0 },
		check: func(e *env) {
			claim := e.exclusive("holder")
			claim.Span = 8
			if g := e.client().granted(claim); g.Fence != 0 || g.Span > 1 {
				e.failf("granted token %d and %d of them", g.Fence, g.Span)
			}
		},
	},
	{
		name:  "feature/no-roam",
		words: "A store whose claims are bound to their clients says ErrInvalid to Leave, and keeps the claim as it is.",
		when:  func(h Harness) bool { return h.Lacks&Roam != 0 },
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim := e.exclusive("would be left")
			a.granted(claim)
			if err := a.renewals(leave(claim))[0]; !errors.Is(err, driver.ErrInvalid) {
				e.failf("Renew of %s with Leave returned %v, not ErrInvalid", show(claim), told(err))
			}
			a.kept(claim)
			b.refused(e.exclusive("other"))
			a.ended(claim)
			b.granted(e.exclusive("next"))
		},
	},
	{
		name:  "feature/no-raise",
		words: "A store that gives no token asked for, and raises none, says ErrInvalid to both: it keeps nothing of the one, and the other as it is.",
		when:  func(h Harness) bool { return h.Lacks&(Tokens|Raise) != 0 },
		check: func(e *env) {
			a, b := e.client(), e.client()
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
