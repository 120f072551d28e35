package redlock

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// mostLead is how far a proposal is ahead of the wall clock.
const mostLead = 100 * time.Millisecond

// A clock proposes tokens: microseconds of the wall clock and a lead, or the
// number after the highest that it has seen, whichever is larger. A proposal that
// is larger than all before on every node is taken by every node, and one round
// is enough. A node gives none that is behind its own clock: the lead covers the
// way to it, and by how much its clock is ahead.
type clock struct {
	now  func() time.Time
	lead time.Duration

	mu   sync.Mutex
	last uint64
}

// newClock returns a clock whose lead is short beside the quarantine: a node that
// has forgotten its tokens must be past all of them when it counts again.
func newClock(quarantine time.Duration) clock {
	if quarantine > 0 {
		return clock{now: time.Now, lead: min(mostLead, quarantine/10)}
	}
	return clock{now: time.Now, lead: mostLead}
}

// next returns a token that is at least this one. The span that begins with it
// is not proposed again.
func (c *clock) next(least uint64, span int) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := uint64(max(c.now().Add(c.lead).UnixMicro(), 1))
	token := max(ahead, c.last+1)
	if least > token {
		return least // The nodes judge it.
	}
	c.last = token + uint64(max(span, 1)) - 1
	return token
}

// see takes note of a token that a node has given, up to which others may have
// been, and reports whether it can be true: one from a node whose clock is days
// ahead would draw all others after it.
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
