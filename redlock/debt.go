package redlock

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	mostDebts = 1000 // per node; the oldest go first, and run out by themselves
	maxBatch  = 500

	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// A debt is a release that a node has not answered, until the claim has expired there.
type debt struct {
	release driver.Release
	until   time.Time
}

// owe keeps a release to be sent again. Call it with mu held.
func (n *node) owe(d debt) {
	if n.inner == nil {
		n.settle(d.release) // It never was asked for anything.
		return
	}
	d.release.Late = true
	n.debts = append(n.debts, d)
	if len(n.debts) > mostDebts {
		n.settle(n.debts[0].release)
		n.debts = n.debts[1:]
	}
	if !n.paying {
		n.paying = n.redlock.spawn(n.pay)
	}
}

// pay sends the releases that are owed until all are answered.
func (n *node) pay() {
	pause := firstPause
	for {
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-timer.C:
		case <-n.redlock.quit:
			timer.Stop()
			return
		}
		batch := n.due()
		if len(batch) == 0 {
			return
		}
		pause = min(2*pause, lastPause)
		if n.repay(batch) {
			pause = firstPause
		}
	}
}

// repay reports whether the node has answered.
func (n *node) repay(batch []debt) bool {
	rs := make([]driver.Release, len(batch))
	for i := range batch {
		rs[i] = batch[i].release
	}
	ctx, end := n.redlock.limit(nodeLimit, 1)
	defer end()
	errs, err := n.send(ctx, rs)
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, d := range batch {
		if err == nil && (errs == nil || settled(errs[i])) {
			n.settle(d.release)
		} else {
			n.owe(d)
		}
	}
	return err == nil
}

// due takes the next debts, none if the work is done.
func (n *node) due() (batch []debt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for len(n.debts) > 0 && len(batch) < maxBatch {
		d := n.debts[0]
		n.debts = n.debts[1:]
		if now.Before(d.until) {
			batch = append(batch, d)
		} else {
			n.settle(d.release)
		}
	}
	n.paying = len(batch) > 0
	return batch
}
