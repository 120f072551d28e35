package redlock

import (
	"context"

	"github.com/holdfast-go/holdfast/driver"
)

// A departure stands for the releases of a key that are on their way to a node. Release
// returns before the slowest nodes have answered. An Acquire that overtook the release at a
// node would be refused there, and the next holder would have a node less.
type departure struct {
	releases int
	over     chan struct{} // closed when the node has answered the last release, or not in time
}

// departLocked notes a release that has no Acquire of the claim to wait for.
func (n *node) departLocked(c driver.Claim, rec *record) {
	d := n.departures[c.Key]
	if d == nil {
		d = &departure{over: make(chan struct{})}
		n.departures[c.Key] = d
	}
	d.releases++
	rec.leaving++
}

// departedLocked ends what departLocked has begun. For other releases departedLocked does
// nothing.
func (n *node) departedLocked(c driver.Claim) {
	rec := n.records[c.ID]
	if rec.leaving == 0 {
		return
	}
	rec.leaving--
	d := n.departures[c.Key]
	d.releases--
	if d.releases == 0 {
		delete(n.departures, c.Key)
		close(d.over)
	}
}

// follow lets an Acquire wait for the releases of other claims of the key. An Acquire of a
// claim that is being released does not wait, because the release waits for the Acquire.
// Nor does an Acquire wait for a silent node.
func (n *node) follow(ctx context.Context, c driver.Claim) {
	n.mu.Lock()
	d := n.departures[c.Key]
	wait := d != nil && !n.silent && n.records[c.ID].releases == 0
	n.mu.Unlock()
	if !wait {
		return
	}
	select {
	case <-d.over:
	case <-ctx.Done():
	}
}
