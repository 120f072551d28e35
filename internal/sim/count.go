package sim

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
)

// Count is the amount of work in a world.
type Count struct {
	Seeds, Grants, Refusals, Looks, Losses           int64
	Calls, LostRequests, LostReplies, Duplicates     int64
	Late, Refused, Resets, LostWakes, Cuts           int64
	SlowStarts                                       int64
	Stops, Suspends, Kills, Closes, Breaks, Failures int64
	Idle                                             time.Duration // longest time that a wanted key was free
	Virtual                                          time.Duration
}

// Granted counts a grant, an effect, a leader or a tick.
func (c *Count) Granted() { c.add(&c.Grants) }

func (c *Count) add(n *int64) { atomic.AddInt64(n, 1) }

func (c *Count) cuts(n int)                 { atomic.AddInt64(&c.Cuts, int64(n)) }
func (c *Count) longest(idle time.Duration) { c.Idle = max(c.Idle, idle) }

// Add adds the work of another world: every field, but the longest Idle.
func (c *Count) Add(o *Count) {
	idle := max(c.Idle, o.Idle)
	sum, more := reflect.ValueOf(c).Elem(), reflect.ValueOf(o).Elem()
	for i := range sum.NumField() {
		sum.Field(i).SetInt(sum.Field(i).Int() + more.Field(i).Int())
	}
	c.Idle = idle
}

func (c *Count) String() string {
	return fmt.Sprintf("%d seeds, %d grants, %d accesses, %d losses, %d refusals, %d calls; lost requests %d, lost replies %d, "+
		"duplicates %d, late %d, refused %d, resets %d, lost wake-ups %d, cuts %d, slow starts %d, stops %d, suspends %d, kills %d, closes %d, breaks %d, failures of the store %d; free for %v at most; %.1f virtual hours",
		c.Seeds, c.Grants, c.Looks, c.Losses, c.Refusals, c.Calls, c.LostRequests, c.LostReplies,
		c.Duplicates, c.Late, c.Refused, c.Resets, c.LostWakes, c.Cuts, c.SlowStarts, c.Stops, c.Suspends, c.Kills, c.Closes, c.Breaks, c.Failures, c.Idle, c.Virtual.Hours())
}
