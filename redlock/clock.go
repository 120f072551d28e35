package redlock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// mostLead is how far a proposal is ahead of the wall clock.
const mostLead = 100 * time.Millisecond

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

// newClock returns a clock with a lead that is short beside the quarantine: a node that has
// forgotten its tokens must be past all forgotten tokens when the node counts again.
func newClock(quarantine time.Duration) clock {
	if quarantine > 0 {
		return clock{now: time.Now, lead: min(mostLead, quarantine/10)}
	}
	return clock{now: time.Now, lead: mostLead}
}

// next returns a token that is not smaller than least. The span that begins with the token
// is not proposed again.
func (c *clock) next(least uint64, span int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := uint64(max(c.now().Add(c.lead).UnixMicro(), 1))
	token := max(ahead, c.last+1)
	if least > token {
		return least // The nodes judge least.
	}
	c.last = token + uint64(max(span, 1)) - 1
	return token
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
