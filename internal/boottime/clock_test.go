package boottime

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClockFollowsMonotonicTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		time.Sleep(3 * time.Hour)
		if got := c.Now(); got != 3*time.Hour {
			t.Errorf("after 3h the clock says %v", got)
		}
	})
}

func TestSimulatedSuspendAdds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept time.Duration
		c := Simulated(func() time.Duration { return slept })
		time.Sleep(time.Second)
		slept = time.Minute
		if got := c.Now(); got != 61*time.Second {
			t.Errorf("after 1s awake and 1m asleep the clock says %v", got)
		}
	})
}

func TestWallClockMovesCount(t *testing.T) {
	d := &detector{base: time.Now().Round(0), start: asleep()} // without a monotonic reading
	d.last.Store(&reading{ahead: -time.Hour})
	got := d.slept(time.Now())
	if trustsWallClock && got < time.Hour {
		t.Errorf("the wall clock moved an hour against the monotonic one, but only %v count as asleep", got)
	}
	if !trustsWallClock && got > tolerance {
		t.Errorf("a step of the wall clock counts as %v of sleep", got)
	}
}

// Leases are counted by this clock alone, so a step of the wall clock cannot
// end one, or keep one alive, where the system tells a step from a suspend.
func TestStepOfTheWallClockChangesNothing(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, time.Hour} {
		c := New()
		d := &detector{base: c.base, start: asleep()}
		d.last.Store(&reading{ahead: -step}) // what it read before the step
		c.slept = d.slept
		before, after := c.Now(), c.Now()
		jump := after - before
		if before > time.Minute || before < 0 {
			jump = before
		}
		if jump.Abs() > time.Minute && !(trustsWallClock && step > 0) {
			t.Errorf("a step of %v moved the clock by %v", step, jump)
		}
	}
}

func TestSleptNeverFalls(t *testing.T) {
	d := &detector{base: time.Now(), start: asleep() - time.Hour}
	d.last.Store(&reading{ahead: -time.Hour, slept: 2 * time.Hour})
	if got := d.slept(time.Now()); got < 2*time.Hour {
		t.Errorf("time asleep fell from 2h to %v", got)
	}
}

func BenchmarkNow(b *testing.B) {
	c := New()
	for b.Loop() {
		c.Now()
	}
}
