package schedlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A clock that is slower than timers does not let a replica come twice to a tick.
func TestSlowClock(t *testing.T) {
	simulate(t, func(c *cluster) {
		j, began := c.replica(Every(time.Minute), 0), time.Now()
		j.Clock = func() time.Time { return began.Add(time.Since(began) * 995 / 1000) }
		go j.Loop(c.ctx, c.run("one"))
		time.Sleep(time.Hour)
		synctest.Wait()
		c.expect("a slow clock", 0, ErrTaken)
		c.expect("a slow clock", 59, nil)
	})
}

// A clock that is wrong for a while, or wrong at first, keeps a replica from no tick but
// those that it has come to before, and it says so.
func TestClockIsSetBack(t *testing.T) {
	for _, interval := range []time.Duration{time.Minute, time.Hour} {
		simulate(t, func(c *cluster) {
			var ahead atomic.Int64
			j := c.replica(Every(interval), 0)
			j.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
			began := time.Now()
			stay := func(from, to time.Duration, skew time.Duration) {
				time.Sleep(time.Until(began.Add(from)))
				ahead.Store(int64(skew))
				time.Sleep(time.Until(began.Add(to)))
				synctest.Wait()
			}
			ahead.Store(int64(24 * time.Hour)) // when it starts
			go j.Loop(c.ctx, c.run("one"))
			stay(0, 3*time.Hour, 24*time.Hour)
			c.expect("ahead", 0, ErrSetBack)
			stay(3*time.Hour, 6*time.Hour, 0)
			c.expect("set right", 1, ErrSetBack)
			stay(6*time.Hour, 7*time.Hour, 12*time.Hour)
			stay(7*time.Hour, 34*time.Hour, 0)
			c.expect("set right again", 2, ErrSetBack)
			c.mu.Lock()
			defer c.mu.Unlock()
			missing := 0
			for tick := began.Truncate(interval).Add(interval); tick.Before(began.Add(34 * time.Hour)); tick = tick.Add(interval) {
				switch runs := c.runs[tick.UTC()]; {
				case len(runs) > 1:
					c.Errorf("%v is run %d times", tick, len(runs))
				case len(runs) == 0:
					missing++
				}
			}
			// For four hours the clock was wrong, and for each step one tick may be missed.
			if most := int(4*time.Hour/interval) + 4; missing > most {
				c.Errorf("every %v: %d ticks are not run, want at most %d", interval, missing, most)
			}
		})
	}
}

// In a night in which the clocks are changed, replicas run each tick once, and go on.
func TestLoopWhenClocksAreChanged(t *testing.T) {
	eachNight(t, func(t *testing.T, s Schedule, change time.Time) {
		simulate(t, func(c *cluster) {
			begin := change.Add(-4 * time.Hour)
			skew := time.Until(begin)
			for i := range 2 {
				j := c.replica(s, skew+time.Duration(i)*20*time.Second)
				j.Overlap = Allow // fast clocks and slow ones begin with different ticks
				go func() {
					if err := j.Loop(c.ctx, c.run(fmt.Sprint(i))); !errors.Is(err, context.Canceled) {
						c.Errorf("the loop ends with %v", err)
					}
				}()
			}
			time.Sleep(28 * time.Hour)
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			for now := begin.Add(time.Minute); now.Before(begin.Add(28 * time.Hour)); now = now.Add(time.Minute) {
				want := 0
				if s.Next(now.Add(-time.Second)).Equal(now) {
					want = 1
				}
				if got := len(c.runs[now.UTC()]); got != want {
					c.Errorf("%v is run %d times, want %d", now, got, want)
				}
			}
		})
	})
}
