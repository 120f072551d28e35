package schedlock

import "time"

// A course holds the times that a Loop has reached by its clock. If the clock was set
// back, this Loop does not run the ticks of these times again, and leaves them to the
// other replicas.
type course struct {
	spans []span
	wall  time.Time // the clock at the last look
	at    time.Time // the same moment by time.Now, and so by the monotonic clock
}

// A span is a time without steps of the clock: after from, up to to. A span begins
// earlier by the tolerance, by which a tick may be late.
type span struct{ from, to time.Time }

// look notes the time of the clock. look returns by how much the clock was set back if the
// step is longer than the tolerance.
func (c *course) look(wall time.Time, tolerance time.Duration) (back time.Duration) {
	at := time.Now()
	step := wall.Sub(c.wall) - at.Sub(c.at)
	if back = c.wall.Sub(wall); back <= tolerance {
		back = 0
	}
	if c.spans == nil || back > 0 || step > tolerance {
		c.spans = append(c.spans, span{wall.Add(-tolerance), wall})
	}
	c.wall, c.at = wall, at
	c.reach(wall)
	return back
}

// reach notes that the loop has reached the ticks up to t.
func (c *course) reach(t time.Time) {
	if last := &c.spans[len(c.spans)-1]; t.After(last.to) {
		last.to = t
	}
}

// next returns the first tick after t that the loop has not reached; zero if there is none.
func (c *course) next(s Schedule, t time.Time) time.Time {
	tick := upcoming(s, t)
	for i := 0; i < len(c.spans) && !tick.IsZero(); i++ {
		if in := c.spans[i]; tick.After(in.from) && !tick.After(in.to) {
			tick, i = upcoming(s, in.to), -1
		}
	}
	return tick
}
