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

// breakID is breaks for ids that need not belong to a claim.
func (c *client) breakID(key, id string) error {
	ctx, cancel := c.bounded()
	defer cancel()
	return c.inspector().Break(ctx, key, id)
}

// breakRules are about Break, with which an operator ends a claim of a process that does
// not answer.
var breakRules = []rule{
	// Operators break the lock of a hung holder. The renewals of the holder must not bring
	// the claim back, nor its release end the next claim.
	{
		name:  "break/ends",
		words: "Break ends a claim at once: a renewal returns ErrLost, and the next claim is granted.",
		needs: Inspect,
		check: func(e *env, a, b *client) {
			claim, next := a.takes("broken"), e.exclusive("next")
			b.breaks(claim)
			b.granted(next)
			a.lost(claim)
			a.nothing(claim)
			b.kept(next)
		},
	},
	// The holder can then log that an operator ended the lock, and need not search for a
	// network failure.
	{
		name:  "break/reason",
		words: "A renewal of a broken claim returns ErrBroken.",
		needs: Inspect | Reasons,
		check: func(e *env, a, b *client) {
			claim := a.takes("broken")
			b.breaks(claim)
			if err := a.renew(claim)[0]; !errors.Is(err, driver.ErrBroken) {
				e.failf("Renew of %s returned %v, not ErrBroken", show(claim), told(err))
			}
		},
	},
	// The claim's own id is the owner's secret and never appears in lists. A store that
	// matches patterns, or ignores the key, would end a foreign claim.
	{
		name:  "break/by-public-id",
		words: "Break accepts only the PublicID of an existing claim: for every other id, Break returns ErrLost and ends nothing.",
		needs: Inspect,
		check: func(e *env, a, b *client) {
			holder := a.takes("holder")
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
	// One slot of a semaphore may hang while its neighbours work. A store that breaks the
	// key as a whole ends healthy holders.
	{
		name:  "break/the-right-one",
		words: "If several claims hold a key, Break ends only the named claim.",
		needs: Inspect | Readers,
		check: func(e *env, a, b *client) {
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
	// Two operators may break the same lock within a moment. The second command must not hit
	// the new holder, nor report success.
	{
		name:  "break/twice",
		words: "A second Break of the same claim returns ErrLost and does not end the next claim.",
		needs: Inspect,
		check: func(e *env, a, b *client) {
			claim, next := a.takes("broken"), e.exclusive("next")
			b.breaks(claim)
			a.granted(next)
			if err := b.breakID(e.key, driver.PublicID(claim.ID)); !errors.Is(err, driver.ErrLost) {
				e.failf("the second Break returned %v, not ErrLost", told(err))
			}
			a.kept(next)
		},
	},
	// Breaking a holder is like a release by a different client. A store that clears the
	// record of the key with the holder loses the queue.
	{
		name:  "break/lets-the-next-in",
		words: "After a Break, the first waiter is granted, and later waiters keep their order.",
		needs: Inspect | Queue,
		check: swift(func(e *env, a, b *client) {
			holder, first, second := a.takes("holder"), b.waits("first"), a.waits("second")
			b.breaks(holder)
			a.refused(second)
			b.granted(first)
		}),
	},
	// A hung waiter blocks a fair queue. Holders shows waiters, so an operator expects that
	// Break accepts their ids.
	{
		name:  "break/waiting",
		words: "Break ends a claim in the queue, and the waiters behind move up.",
		needs: Inspect | Queue,
		check: swift(func(e *env, a, b *client) {
			holder, first, second := a.takes("holder"), b.waits("first"), a.waits("second")
			b.breaks(first)
			a.kept(holder)
			a.ended(holder)
			a.granted(second)
		}),
	},
}
