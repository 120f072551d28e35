package engine

import (
	"context"
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

// enterUpgrade begins the request. An upgrade asks the store beside the contender: the queue of
// the process may wait for the reader.
func (a *attempt) enterUpgrade(t *table) error {
	if a.closed.Load() {
		return ErrClosed
	}
	if err := a.reader.Ended(); err != nil {
		return err
	}
	if u := a.reader.upgrade.Load(); u != nil && u.Ended() == nil {
		return ErrUpgraded
	}
	a.turn = a.reader.lease.turn
	a.turn.begin(a.Terms)
	a.lease = t.lease(a.turn, a.Terms, a.Owner)
	a.seen = a.now()
	a.busy.Add(1)
	return nil
}

// lookAhead reads, after a refusal, the claims in the way of an upgrade. lookAhead returns an
// error if the upgrade must not wait: a claim waits ahead, or the store has no queue to look at.
// A claim that the cleaner is to release is not in the way. A place in the store's queue can be
// lost, so every refusal needs a look.
func (a *attempt) lookAhead() error {
	if !a.upgrades() {
		return nil
	}
	inspector, ok := a.Store.(driver.Inspector)
	if !ok {
		return a.Words.Held(a.refusal)
	}
	leaving := cleaner{a.core}.leaving(a.Key) // before the look: a claim in an old list may be gone
	claims, err := a.look(a.ctx, inspector, a.Key, callLimit(a.TTL))
	now := a.now()
	switch cause := silence.Ended(a.ctx); {
	case cause != nil:
		return a.endOfWait(cause)
	case err != nil && now-a.seen > min(a.TTL, longestSilence): // for so long, this may be a deadlock
		return silence.Of(err, now-a.seen)
	case err != nil:
		return nil
	}
	a.seen = now
	own, reader := driver.PublicID(a.lease.claim().ID), driver.PublicID(a.reader.ID())
	queued, other := false, false
	for _, claim := range claims {
		r := refusalOf(driver.Grant{Holder: claim, Left: claim.Left})
		switch {
		case claim.ID == own:
			queued = true
		case claim.ID == reader || slices.Contains(leaving, claim.ID):
		case claim.Waiting && !queued:
			return a.Words.Ahead(r)
		case !claim.Waiting && !other:
			a.refusal, other = r, true
		}
	}
	if !queued { // a try, or a store without a queue
		return a.Words.Held(a.refusal)
	}
	return nil
}

// look returns the claims on the key, and nothing once the caller has left. The request outlives
// the caller: a request that is cut short may cost the store a connection. look takes parts of
// an attempt, because an attempt that outlives its call would be an allocation more for each call.
func (c *core) look(ctx context.Context, i driver.Inspector, key string, limit time.Duration) ([]driver.Holder, error) {
	type answer struct {
		claims []driver.Holder
		err    error
	}
	c.busy.Add(1)
	got := bounded.Within(ctx, func() answer {
		defer c.busy.Done()
		sent, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		claims, err := i.Holders(sent, key)
		return answer{claims, err}
	})
	return got.claims, got.err
}
