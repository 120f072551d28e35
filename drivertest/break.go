package drivertest

import (
	"errors"

	"github.com/holdfast-go/holdfast/driver"
)

// breaks ends a claim as an operator would.
func (c *client) breaks(claim driver.Ask) {
	if err := c.breakID(claim.Key, driver.PublicID(claim.ID)); err != nil {
		c.failf("Break of %s returned %v", show(claim), told(err))
	}
}

func (c *client) breakID(key, id string) error {
	ctx, cancel := c.bounded()
	defer cancel()
	return c.inspector().Break(ctx, key, id)
}

var breakRules = []rule{
	{
		name:  "break/ends",
		words: "Break ends a claim at once: its renewals say that it is lost, and another is granted.",
		needs: Inspect,
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim, next := e.exclusive("broken"), e.exclusive("next")
			a.granted(claim)
			b.breaks(claim)
			b.granted(next)
			a.lost(claim)
			a.nothing(claim)
			b.kept(next)
		},
	},
	{
		name:  "break/reason",
		words: "The owner of a broken claim is told that it was broken.",
		needs: Inspect | Reasons,
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim := e.exclusive("broken")
			a.granted(claim)
			b.breaks(claim)
			if err := a.renew(claim)[0]; !errors.Is(err, driver.ErrBroken) {
				e.failf("Renew of %s returned %v, not ErrBroken", show(claim), told(err))
			}
		},
	},
	{
		name:  "break/by-public-id",
		words: "Break knows a claim by its PublicID only: by its own id, or that of a claim which does not exist, it ends nothing.",
		needs: Inspect,
		check: func(e *env) {
			a, b := e.client(), e.client()
			holder := e.exclusive("holder")
			a.granted(holder)
			for _, id := range []string{holder.ID, driver.PublicID(e.exclusive("stranger").ID), "", "*"} {
				if err := b.breakID(e.key, id); !errors.Is(err, driver.ErrLost) {
					e.failf("Break of %q returned %v, not ErrLost", id, told(err))
				}
			}
			if err := b.breakID(e.key+"/other", driver.PublicID(holder.ID)); !errors.Is(err, driver.ErrLost) {
				e.failf("Break on another key returned %v, not ErrLost", told(err))
			}
			a.kept(holder)
			b.refused(e.exclusive("other"))
		},
	},
	{
		name:  "break/the-right-one",
		words: "Of several claims on a key Break ends the one that it names.",
		needs: Inspect | Readers,
		check: func(e *env) {
			a, b := e.client(), e.client()
			claims := []driver.Ask{e.reader("first"), e.reader("second"), e.reader("third")}
			for _, claim := range claims {
				a.granted(claim)
			}
			b.breaks(claims[1])
			a.kept(claims[0])
			a.lost(claims[1])
			a.kept(claims[2])
		},
	},
	{
		name:  "break/twice",
		words: "A claim that was broken is there no more: a second Break says ErrLost and does not hurt the next.",
		needs: Inspect,
		check: func(e *env) {
			a, b := e.client(), e.client()
			claim, next := e.exclusive("broken"), e.exclusive("next")
			a.granted(claim)
			b.breaks(claim)
			a.granted(next)
			if err := b.breakID(e.key, driver.PublicID(claim.ID)); !errors.Is(err, driver.ErrLost) {
				e.failf("the second Break returned %v, not ErrLost", told(err))
			}
			a.kept(next)
		},
	},
	{
		name:  "break/lets-the-next-in",
		words: "Break lets the next in the queue in, and nobody before it.",
		needs: Inspect | Queue,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, first, second := e.exclusive("holder"), waiting(e.exclusive("first")), waiting(e.exclusive("second"))
			a.granted(holder)
			b.refused(first)
			a.refused(second)
			b.breaks(holder)
			a.refused(second)
			b.granted(first)
		}),
	},
	{
		name:  "break/waiting",
		words: "Break ends a claim in the queue, which Holders shows, and those behind it move up.",
		needs: Inspect | Queue,
		check: swift(func(e *env) {
			a, b := e.client(), e.client()
			holder, first, second := e.exclusive("holder"), waiting(e.exclusive("first")), waiting(e.exclusive("second"))
			a.granted(holder)
			b.refused(first)
			a.refused(second)
			b.breaks(first)
			a.kept(holder)
			a.ended(holder)
			a.granted(second)
		}),
	},
}
