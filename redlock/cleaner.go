package redlock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	maxLeftovers = 1000 // per node; the oldest are dropped, and the claims expire
	maxBatch     = 500

	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// A release is a driver.Release on its way to a node. Without an answer the release is a
// leftover, and is repeated until the claim has expired at the node.
type release struct {
	driver.Release
	until time.Time
}

// send makes the call of the releases, and keeps the releases without an answer as leftovers.
func (n *node) send(ctx context.Context, batch []release) (errs []error, err error) {
	rs := make([]driver.Release, len(batch))
	for i := range batch {
		rs[i] = batch[i].Release
	}
	err = n.call(ctx, func(inner driver.Store) error {
		errs = inner.Release(ctx, rs)
		return unanswered(len(rs), errs)
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range batch {
		if err == nil && (errs == nil || ended(errs[i])) {
			n.releasedLocked(r.Release)
		} else {
			n.keepLocked(r)
		}
	}
	return errs, err
}

// keepLocked keeps a leftover for the cleaner.
func (n *node) keepLocked(r release) {
	if n.inner == nil {
		n.releasedLocked(r.Release) // The node has never received a request.
		return
	}
	r.Late = true
	n.leftovers = append(n.leftovers, r)
	if len(n.leftovers) > maxLeftovers {
		n.releasedLocked(n.leftovers[0].Release)
		n.leftovers = n.leftovers[1:]
	}
	if !n.cleaning {
		n.cleaning = n.redlock.spawn(n.clean)
	}
}

// clean is the cleaner of the node: it sends the leftovers until all are answered.
func (n *node) clean() {
	pause := firstPause
	for {
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-n.redlock.quit:
			timer.Stop()
			return
		}
		batch := n.nextLeftovers()
		if len(batch) == 0 {
			return
		}
		pause = min(2*pause, lastPause)
		ctx, end := n.redlock.limit(nodeLimit, 1)
		if _, err := n.send(ctx, batch); err == nil {
			pause = firstPause
		}
		end()
	}
}

// nextLeftovers takes the oldest leftovers, none if the work is done.
func (n *node) nextLeftovers() (batch []release) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for len(n.leftovers) > 0 && len(batch) < maxBatch {
		r := n.leftovers[0]
		n.leftovers = n.leftovers[1:]
		if now.Before(r.until) {
			batch = append(batch, r)
		} else {
			n.releasedLocked(r.Release)
		}
	}
	n.cleaning = len(batch) > 0
	return batch
}
