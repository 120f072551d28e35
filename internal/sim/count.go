package sim

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Count is the amount of work in a world.
type Count struct {
	Seeds, Grants, Refusals, Looks, Losses            int64
	Calls, LostRequests, LostReplies, Duplicates      int64
	Late, Refused, Resets, LostWakes, Cuts            int64
	SlowStarts                                        int64
	Stops, Suspends, Kills, Closes, Breaks, FailOvers int64
	Idle                                              time.Duration // longest time that a wanted key was free
	Virtual                                           time.Duration
}

// Granted counts a grant, an effect, a leader or a tick.
func (c *Count) Granted() { c.add(&c.Grants) }

func (c *Count) add(n *int64) { atomic.AddInt64(n, 1) }

func (c *Count) cuts(n int)                 { atomic.AddInt64(&c.Cuts, int64(n)) }
func (c *Count) longest(idle time.Duration) { c.Idle = max(c.Idle, idle) }

// Add adds the work of another world.
func (c *Count) Add(o *Count) {
	c.Seeds += o.Seeds
	c.Grants += o.Grants
	c.Refusals += o.Refusals
	c.Looks += o.Looks
	c.Losses += o.Losses
	c.Calls += o.Calls
	c.LostRequests += o.LostRequests
	c.LostReplies += o.LostReplies
	c.Duplicates += o.Duplicates
	c.Late += o.Late
	c.Refused += o.Refused
	c.Resets += o.Resets
	c.LostWakes += o.LostWakes
	c.Cuts += o.Cuts
	c.SlowStarts += o.SlowStarts
	c.Stops += o.Stops
	c.Suspends += o.Suspends
	c.Kills += o.Kills
	c.Closes += o.Closes
	c.Breaks += o.Breaks
	c.FailOvers += o.FailOvers
	c.Idle = max(c.Idle, o.Idle)
	c.Virtual += o.Virtual
}

func (c *Count) String() string {
	return fmt.Sprintf("%d seeds, %d grants, %d accesses, %d losses, %d refusals, %d calls; lost requests %d, lost replies %d, "+
		"duplicates %d, late %d, refused %d, resets %d, lost wake-ups %d, cuts %d, slow starts %d, stops %d, suspends %d, kills %d, closes %d, breaks %d, fail-overs %d; free for %v at most; %.1f virtual hours",
		c.Seeds, c.Grants, c.Looks, c.Losses, c.Refusals, c.Calls, c.LostRequests, c.LostReplies,
		c.Duplicates, c.Late, c.Refused, c.Resets, c.LostWakes, c.Cuts, c.SlowStarts, c.Stops, c.Suspends, c.Kills, c.Closes, c.Breaks, c.FailOvers, c.Idle, c.Virtual.Hours())
}
