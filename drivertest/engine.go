package drivertest

import (
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// engineRules are for stores that are a driver.Checker, Creator or Ager. Most stores need
// not be, so there is no Feature.
var engineRules = []rule{
	// Open shows the warnings to the user. A Check that fails on a healthy engine makes
	// users ignore warnings.
	{
		name:  "engine/check",
		words: "A Check succeeds while the engine answers, and no warning is empty.",
		check: func(e *env, a, _ *client) {
			checker, ok := a.store.(driver.Checker)
			if !ok {
				return
			}
			ctx, cancel := e.bounded()
			defer cancel()
			warnings, err := checker.Check(ctx)
			if err != nil {
				e.failf("Check returned %v", told(err))
			}
			for _, w := range warnings {
				if strings.TrimSpace(w) == "" {
					e.failf("Check warns of %q", w)
				}
			}
		},
	},
	// Every deployment runs Create, while an older release still holds locks. A Create that
	// makes the table anew would free every lock and restart the tokens.
	{
		name:  "engine/create",
		words: "An engine may be prepared twice: claims stand, tokens go on, and Schema has statements.",
		check: func(e *env, a, b *client) {
			creator, ok := a.store.(driver.Creator)
			if !ok {
				return
			}
			holder, next := e.exclusive("holder"), e.exclusive("next")
			before := a.granted(holder).Fence
			// Once while a claim stands, and once while the key has only its last token.
			a.created(creator)
			b.refused(next)
			a.kept(holder)
			a.ended(holder)
			a.created(creator)
			if after := b.granted(next).Fence; after <= before && e.has(Tokens) {
				e.failf("token %d before it was prepared again, %d after", before, after)
			}
			if len(creator.Schema()) == 0 {
				e.failf("Schema has no statements")
			}
		},
	},
	// Redlock ignores the vote of a node younger than the quarantine, because the node may
	// have forgotten claims. An age that jumps would admit such a vote.
	{
		name:  "engine/age",
		words: "Age is never negative, and does not shrink while the engine runs.",
		check: func(e *env, a, _ *client) {
			ager, ok := a.store.(driver.Ager)
			if !ok {
				return
			}
			var before time.Duration
			for range 3 {
				age := a.age(ager)
				if age < before {
					e.failf("Age returned %v; want at least %v", age, before)
				}
				before = age
				// A store may take the age from its last request, so there has to be one.
				claim := a.takes("holder")
				a.ended(claim)
			}
		},
	},
}

// created prepares the engine, and expects success.
func (c *client) created(creator driver.Creator) {
	ctx, cancel := c.bounded()
	defer cancel()
	if err := creator.Create(ctx); err != nil {
		c.failf("Create returned %v", told(err))
	}
}

// age asks for the age of the engine, and expects an answer.
func (c *client) age(ager driver.Ager) time.Duration {
	ctx, cancel := c.bounded()
	defer cancel()
	age, err := ager.Age(ctx)
	if err != nil {
		c.failf("Age returned %v", told(err))
	}
	return age
}
