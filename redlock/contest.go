package redlock

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	mostPause   = 50 * time.Millisecond  // between two rounds of a contest
	mostContest = 300 * time.Millisecond // the longest time that a call spends on a contest
)

// A contest is on when several claims have some nodes and no claim has a majority. One
// claim must then get the nodes of the losing claims. Clients that see the same nodes
// come to the same result. The claim with the most nodes wins, and among equals the claim
// with the smallest public id. The losing claims release their nodes, and the queues of
// the nodes grant the nodes to the winner.
//
// A round may fall between two nodes that receive a release. So no claim gives way after the
// first round, unless there is no time for another round, and the pauses are random.
type contest struct {
	rounds int
	pause  time.Duration
}

// contends makes a move in the contest. took is how long the last round took. contends
// reports whether to make another round: false if the contest is settled or has lasted too long,
// if the context leaves no time for a round, or if this claim loses and does not wait. Without the
// time, the answers so far are better than the error of a call that was cut short.
func (b *bid) contends(ctx context.Context, c *contest, took time.Duration) bool {
	took = max(took, time.Millisecond)
	mine, best, settled := b.standing()
	b.open = !settled
	if settled || time.Since(b.began) > mostContest {
		return false
	}
	c.rounds++
	loses := best.nodes > mine || best.nodes == mine && best.id < driver.PublicID(b.ask.ID)
	if best.id == "" {
		loses = rand.N(2) == 0 // If nodes report no names, chance decides.
	}
	if loses && (c.rounds > 1 || remaining(ctx) < 2*took) {
		if !b.ask.Wait {
			return false
		}
		b.yield(ctx)
	}
	spare := remaining(ctx) - 2*took // A round may take longer than the last.
	if spare <= 0 {
		return false
	}
	c.pause = min(max(2*c.pause, took), mostPause)
	pause := c.pause + rand.N(3*c.pause)
	if pause > spare {
		pause = spare - rand.N(spare)/2
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// remaining is the time until the context ends at its deadline.
func remaining(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return math.MaxInt64
	}
	return time.Until(deadline)
}

// A rival is a claim that blocks this claim on some nodes.
type rival struct {
	id    string // public; rivals without a name count as a single rival
	nodes int
}

// standing counts the nodes of this claim, and the nodes of the strongest rival. The
// contest is settled if the rival has a majority, or if all nodes have answered and this claim has
// none: a node that has not answered may have granted the claim.
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
	none := mine == 0 && b.count(asked) == 0
	return mine, best, none || best.nodes >= b.majority() && best.id != ""
}

// yield releases the nodes of this claim, to queue on these nodes again.
func (b *bid) yield(ctx context.Context) {
	var mine []*node
	for i, n := range b.nodes {
		if b.votes[i].kind == granted {
			b.votes[i] = vote{kind: refused}
			mine = append(mine, n)
		}
	}
	rs := []driver.Release{{Claim: b.ask.Claim}}
	announce(mine, rs)
	answers := each(b.Store, nodeLimit, mine, func(ctx context.Context, n *node) ([]error, error) { return n.requeue(ctx, rs) })
	for range mine {
		select {
		case <-answers:
		case <-ctx.Done():
			return
		}
	}
}

// refusal names the claim that blocks on most nodes, and says when enough nodes may be
// free for a retry.
func (b *bid) refusal() driver.Grant {
	g := driver.Grant{Blocked: b.blocked()}
	var retries []time.Duration
	most := 0
	for i := range b.votes {
		v := &b.votes[i]
		if v.kind != refused {
			continue
		}
		retries = append(retries, v.grant.Left)
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
		g.Left = retries[i]
	}
	return g
}
