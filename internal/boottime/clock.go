// Package boottime is a clock for leases: the clock starts at zero, never steps, and goes
// on while the machine is suspended.
//
// Go's monotonic clock stops during a suspend on most systems. So a process that sleeps
// with its laptop for an hour would wake and believe in a lease that expired long ago. The
// wall clock goes on, but steps whenever somebody sets it. A [Clock] counts monotonic time
// and adds the time asleep.
package boottime

import (
	"sync/atomic"
	"time"
)

// A Clock counts from its creation.
type Clock struct {
	base  time.Time
	slept func(now time.Time) time.Duration
	host  Host // nil unless simulated
}

// A Simulator is a store that provides the clock of its process.
type Simulator interface{ Clock() *Clock }

// A Host is a simulated machine, which can be suspended.
type Host interface {
	// Ran returns the monotonic time at t, which stands still during a suspend.
	Ran(t time.Time) time.Duration

	// Slept returns for how long the machine has been suspended until t.
	Slept(t time.Time) time.Duration

	// NewTimer returns a timer by the monotonic time.
	NewTimer(d time.Duration) Timer
}

// New returns a clock that starts now.
func New() *Clock {
	base := time.Now()
	d := &detector{base: base, start: asleep()}
	d.last.Store(&reading{})
	return &Clock{base: base, slept: d.slept}
}

// Simulated returns a clock that takes its time asleep from slept, for tests.
func Simulated(slept func() time.Duration) *Clock {
	return &Clock{base: time.Now(), slept: func(time.Time) time.Duration { return slept() }}
}

// Of returns the clock of a simulated machine.
func Of(h Host) *Clock { return &Clock{slept: h.Slept, host: h} }

// NewTimer is time.NewTimer by this clock.
func (c *Clock) NewTimer(d time.Duration) Timer {
	if c.host != nil {
		return c.host.NewTimer(d)
	}
	return Timer{Timer: time.NewTimer(d)}
}

// A Timer is a time.Timer by a [Clock]. Rewind, if set, takes the place of its Reset.
type Timer struct {
	*time.Timer
	Rewind func(d time.Duration) bool
}

// Reset resets the timer like time.Timer.Reset.
func (t Timer) Reset(d time.Duration) bool {
	if t.Rewind != nil {
		return t.Rewind(d)
	}
	return t.Timer.Reset(d)
}

// Now returns the time since the clock was made.
func (c *Clock) Now() time.Duration { return c.At(time.Now()) }

// At returns the result of Now at t, a recent result of time.Now.
func (c *Clock) At(t time.Time) time.Duration { return c.ran(t) + c.slept(t) }

// ran returns the monotonic time.
func (c *Clock) ran(t time.Time) time.Duration {
	if c.host != nil {
		return c.host.Ran(t)
	}
	return t.Sub(c.base)
}

// A detector asks the system for the time asleep only when a suspend is possible: a suspend
// always moves the wall clock against the monotonic clock, and every time.Now reads both
// clocks. The check saves two system calls a reading.
type detector struct {
	base  time.Time
	start time.Duration // asleep() at base
	last  atomic.Pointer[reading]
}

type reading struct {
	ahead time.Duration // how far the wall clock had run ahead of the monotonic clock
	slept time.Duration
}

// tolerance is above the distance of the two readings inside a time.Now, and far below any
// lease.
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
