package redlock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	mostLead = 100 * time.Millisecond // how far a proposal is ahead of the wall clock
	slack    = 10                     // spans may lead further by this part of the lead
)

// A clock proposes tokens: microseconds of the wall clock and a lead, or the number after
// the highest token that the clock has seen, whichever is larger. If the proposal is larger
// than all tokens of the nodes, every node takes the proposal, and one round is enough. A
// node takes no proposal behind the node's own clock: the lead covers the way to the node,
// and by how much the node's clock is ahead.
type clock struct {
	now  func() time.Time
	lead time.Duration

	mu   sync.Mutex
	last uint64
}

// newClock returns a clock whose tokens lead by a tenth of the quarantine at most: a node that
// has forgotten its tokens must be past all forgotten tokens when the node counts again.
func newClock(quarantine time.Duration) clock {
	if quarantine > 0 {
		return clock{now: time.Now, lead: min(mostLead, quarantine/11)} // with the slack, a tenth
	}
	return clock{now: time.Now, lead: mostLead}
}

// next returns a token that is not smaller than least, and how many tokens belong to the
// proposal: up to span, or one if the tokens are further ahead than the lead and its slack.
// So spans do not let the tokens run away from the clock. The slack is for clients whose
// clocks differ. The tokens are not proposed again.
func (c *clock) next(least uint64, span int) (token uint64, some int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	token = max(uint64(max(now.Add(c.lead).UnixMicro(), 1)), c.last+1)
	switch {
	case least > token:
		return least, span // The nodes judge least.
	case token > uint64(max(now.Add(c.lead+c.lead/slack).UnixMicro(), 1)):
		span = 1
	}
	c.last = token + uint64(max(span, 1)) - 1
	return token, span
}

// see notes a token that a node has given, and reports whether the token can be true: a
// token from a node with a clock days ahead would push all later tokens ahead.
func (c *clock) see(token uint64, span int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := uint64(max(c.now().UnixMicro(), 1))
	if token > max(now, c.last)+driver.MaxLead {
		return false
	}
	c.last = max(c.last, token+uint64(max(span, 1))-1)
	return true
}
