package drivertest

import (
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// formatRules are for stores whose records another release may have written.
var formatRules = []rule{
	// During an upgrade both releases use one store. A release that treats an unknown record
	// as expired or damaged grants the key beside the newer holder.
	{
		name:  "format/newer",
		words: "The record of a newer release is refused with ErrInvalid, which names the key, and no call changes the record.",
		when:  func(h Harness) bool { return h.Newer != nil },
		check: func(e *env, a, b *client) {
			holder, stranger := a.takes("holder"), e.exclusive("stranger")
			unchanged := e.rewritten()
			for _, claim := range []driver.Ask{stranger, waiting(e.exclusive("waiter"))} {
				b.barred(claim)
				b.barred(claim) // the second time, too, where the store knows the claim
			}
			for _, err := range slices.Concat(b.renew(stranger), b.releases(late(stranger))) {
				if !errors.Is(err, driver.ErrInvalid) && !errors.Is(err, driver.ErrLost) {
					e.failf("Renew or Release of %s, which does not hold, returned %v", show(stranger), told(err))
				}
			}
			// A Break by an older release could end the claim of a newer one unseen.
			if e.has(Inspect) {
				ctx, cancel := e.bounded()
				defer cancel()
				holders, err := b.inspector().Holders(ctx, e.key)
				e.unreadable("Holders", err)
				if len(holders) > 0 {
					e.failf("Holders tells %+v of a record that it cannot read", holders)
				}
				e.unreadable("Break", b.breakID(e.key, driver.PublicID(holder.ID)))
			}
			unchanged()
		},
	},
	// The older release cannot know what the new record says of its claim. The claim may
	// live, so ErrLost is as wrong as nil; the lease ends by itself.
	{
		name:  "format/newer-meanwhile",
		words: "If a newer release rewrites a record, a waiter is refused with ErrInvalid, and the holder hears neither that the claim is kept nor that it is gone.",
		needs: Queue | Roam,
		when:  func(h Harness) bool { return h.Newer != nil },
		check: func(e *env, a, b *client) {
			holder, waiter := a.takes("holder"), b.waits("waiter")
			unchanged := e.rewritten()
			b.barred(waiter)
			if err := a.renew(holder)[0]; errors.Is(err, driver.ErrLost) {
				e.failf("Renew of %s returned %v", show(holder), told(err))
			}
			unchanged()
		},
	},
}

// rewritten makes the record of the rule's key one of a newer release. The result fails if a
// call has changed the record since. An older release that writes the record back drops what
// it does not know of.
func (e *env) rewritten() (unchanged func()) {
	record := e.harness.Newer(e.tb, e.key)
	before := record()
	return func() {
		if after := record(); after != before {
			e.failf("the record has changed from %s to %s", cut(before), cut(after))
		}
	}
}

// barred asks once and expects that the record of the key cannot be read.
func (c *client) barred(claim driver.Ask) {
	ctx, cancel := c.bounded()
	defer cancel()
	grant, err := c.store.Acquire(ctx, claim)
	if grant.OK {
		c.failf("Acquire of %s was granted", show(claim))
	}
	c.unreadable("Acquire of "+show(claim), err)
}

// unreadable expects the error of a record that a newer release has written.
func (e *env) unreadable(call string, err error) {
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), e.key) {
		e.failf("%s returned %v; want an ErrInvalid that names the key %q", call, told(err), e.key)
	}
}
