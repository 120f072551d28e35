package engine

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// An upgrade is a second claim beside the claim of a reader. The upgrade takes the rest of the
// key, so the store grants the upgrade exactly if the reader is the only live claim. The upgrade
// excludes a foreign reader only together with its own. So the upgrade ends with the reader, and
// is released before the reader.
//
// A claim ahead of the upgrade in the queue also waits for the reader. Waiting behind such a
// claim would be a deadlock, so the upgrade is refused. If two readers upgrade at the same time,
// the second to enter the store's queue is refused.

// upgrades reports whether the call is one of Upgrade.
func (c *call) upgrades() bool { return c.reader != nil }

// enterUpgrade begins the request. An upgrade asks the store beside the contender: the queue of
// the process may wait for the reader.
func (c *call) enterUpgrade(t *table) error {
	if t.closed {
		return ErrClosed
	}
	if err := c.reader.Ended(); err != nil {
		return err
	}
	if u := c.reader.upgrade.Load(); u != nil && u.Ended() == nil {
		return ErrUpgraded
	}
	c.turn = c.reader.lease.turn
	c.turn.begin(c.Terms)
	c.lease = t.lease(c.turn, c.Terms, c.Owner)
	c.busy.Add(1)
	return nil
}

// lookAhead reads, after a refusal, the claims in the way of an upgrade. lookAhead returns an
// error if the upgrade must not wait: a claim waits ahead, or the store has no queue to look at.
// A claim that the cleaner is to release is not in the way. A place in the store's queue can be
// lost, so every refusal needs a look.
func (c *call) lookAhead() error {
	inspector, ok := c.Store.(driver.Inspector)
	if !ok {
		return c.Words.Held(c.refusal)
	}
	leaving := cleaner{c.core}.leaving(c.Key) // before the look: a claim in an old list may be gone
	began := time.Now()
	ctx := new(bounded.Context).Start(c.ctx, began.Add(callLimit(c.TTL)))
	defer ctx.End()
	claims, err := inspector.Holders(ctx, c.Key)
	if err != nil {
		return c.blind(silence.Of(err, time.Since(began)))
	}
	c.seen = c.now()
	own, reader := driver.PublicID(c.lease.claim().ID), driver.PublicID(c.reader.ID())
	queued, other := false, false
	for _, claim := range claims {
		r := refusalOf(driver.Grant{Holder: claim, Left: claim.Left})
		switch {
		case claim.ID == own:
			queued = true
		case claim.ID == reader || slices.Contains(leaving, claim.ID):
		case claim.Waiting && !queued:
			return c.Words.Ahead(r)
		case !claim.Waiting && !other:
			c.refusal, other = r, true
		}
	}
	if !queued { // a try, or a store without a queue
		return c.Words.Held(c.refusal)
	}
	return nil
}

// blind returns the error of a look if looks have failed for too long: the upgrade may be in a
// deadlock.
func (c *call) blind(err error) error {
	if c.seen == 0 {
		c.seen = c.now()
	}
	if c.now()-c.seen > min(c.TTL, longestSilence) {
		return err
	}
	return nil
}
