// Package boottime is a clock for leases: it starts at zero, never steps, and
// goes on while the machine is suspended.
//
// Go's monotonic clock stops during a suspend on most systems, so a process
// that sleeps with its laptop for an hour would wake and believe in a lease
// that ended long ago. The wall clock goes on, but steps whenever somebody sets
// it. A [Clock] counts monotonic time and adds what was slept.
package boottime

import (
	"sync/atomic"
	"time"
)

// A Clock counts from when it was made.
type Clock struct {
	base  time.Time
	slept func(now time.Time) time.Duration
}

// New returns a clock that starts now.
func New() *Clock {
	base := time.Now()
	d := &detector{base: base, start: asleep()}
	d.last.Store(&reading{})
	return &Clock{base: base, slept: d.slept}
}

// Simulated returns a clock whose time asleep is what slept says, for tests.
func Simulated(slept func() time.Duration) *Clock {
	return &Clock{base: time.Now(), slept: func(time.Time) time.Duration { return slept() }}
}

// Now returns the time since the clock was made.
func (c *Clock) Now() time.Duration { return c.At(time.Now()) }

// At returns what Now would have said at t, a recent result of time.Now.
func (c *Clock) At(t time.Time) time.Duration { return t.Sub(c.base) + c.slept(t) }

// A detector asks the system for the time asleep only when a suspend is
// possible: a suspend always moves the wall clock against the monotonic one,
// and both come with every time.Now. That saves two system calls a reading.
type detector struct {
	base  time.Time
	start time.Duration // asleep() at base
	last  atomic.Pointer[reading]
}

type reading struct {
	ahead time.Duration // how far the wall clock had run ahead of the monotonic one
	slept time.Duration
}

// tolerance is above what separates the two readings inside one time.Now, and
// far below any lease.
const tolerance = time.Millisecond

func (d *detector) slept(now time.Time) time.Duration {
	ahead := time.Duration(now.UnixNano()-d.base.UnixNano()) - now.Sub(d.base)
	for {
		last := d.last.Load()
		if (ahead - last.ahead).Abs() < tolerance {
			return last.slept
		}
		next := &reading{ahead: ahead, slept: d.measure(last, ahead)}
		if d.last.CompareAndSwap(last, next) {
			return next.slept
		}
	}
}
