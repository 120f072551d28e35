package redlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	mostPause   = 50 * time.Millisecond  // between two looks at a contest
	mostContest = 300 * time.Millisecond // that one call looks at one
)

// A contest is on when several claims have some nodes each and none has a
// majority: one of them must be let have the nodes of the others. All who see
// the same nodes come to the same result: the one with the most nodes wins,
// and of several the one with the smallest public id. The others release what
// they have, and the nodes' lines pass it on.
//
// What is seen may be the moment between two nodes that hear of a release. So
// nobody gives way at the first look, and the pauses are random.
type contest struct {
	looks int
	pause time.Duration
}

// contends lets the bid play its part after a look that took so long. It
// reports whether to look again: not if another claim has won, or there is
// nothing to win or to give away.
func (b *bid) contends(ctx context.Context, c *contest, took time.Duration) bool {
	mine, best, settled := b.standing()
	b.open = !settled
	if settled || time.Since(b.began) > mostContest {
		return false
	}
	c.looks++
	loses := best.nodes > mine || best.nodes == mine && best.id < driver.PublicID(b.claim.ID)
	if best.id == "" {
		loses = rand.N(2) == 0 // Nodes that do not tell names leave it to chance.
	}
	if c.looks > 1 && loses {
		if !b.claim.Wait {
			return false
		}
		b.yield(ctx)
	}
	c.pause = min(max(2*c.pause, took, time.Millisecond), mostPause)
	timer := time.NewTimer(c.pause + rand.N(3*c.pause))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// A rival is a claim that is in the way on some nodes.
type rival struct {
	id    string // public; of those that nodes do not name there seems to be one
	nodes int
}

// standing counts the nodes of this claim, and those of the rival that has
// most. The contest is settled if that one has a majority.
func (b *bid) standing() (mine int, best rival, settled bool) {
	rivals := make(map[string]int)
	for i := range b.votes {
		switch v := &b.votes[i]; v.kind {
		case granted:
			mine++
		case refused:
			rivals[v.grant.Holder.ID]++
		}
	}
	for id, n := range rivals {
		if n > best.nodes || n == best.nodes && id < best.id {
			best = rival{id, n}
		}
	}
	return mine, best, mine == 0 || best.nodes >= b.majority() && best.id != ""
}

// yield releases the nodes that this claim has, to stand in line there again.
func (b *bid) yield(ctx context.Context) {
	var mine []*node
	for i, n := range b.nodes {
		if b.votes[i].kind == granted {
			b.votes[i] = vote{kind: refused}
			mine = append(mine, n)
		}
	}
	cs := []driver.Claim{b.claim}
	part(mine, cs)
	answers := each(b.Store, nodeLimit, mine, func(ctx context.Context, n *node) ([]error, error) { return n.cede(ctx, cs) })
	for range mine {
		select {
		case <-answers:
		case <-ctx.Done():
			return
		}
	}
}

// refusal tells of the claim that is in the way on most nodes, and when so many
// of them may be free that asking pays.
func (b *bid) refusal() driver.Grant {
	var g driver.Grant
	var retries []time.Duration
	most := 0
	for i := range b.votes {
		v := &b.votes[i]
		if v.kind != refused {
			continue
		}
		retries = append(retries, v.grant.Retry)
		n := 0
		for j := range b.votes {
			other := &b.votes[j].grant.Holder
			if b.votes[j].kind == refused && other.ID == v.grant.Holder.ID && other.Fence == v.grant.Holder.Fence {
				n++
			}
		}
		if n > most {
			most, g.Holder = n, v.grant.Holder
		}
	}
	slices.Sort(retries)
	if i := b.majority() - b.count(granted) - 1; i < len(retries) {
		g.Retry = retries[i]
	}
	return g
}
