package schedlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/redlock"
)

// A cluster is replicas that share a store, in virtual time.
type cluster struct {
	*testing.T
	store shared
	ctx   context.Context

	mu   sync.Mutex
	runs map[time.Time][]string // who ran a tick
	ends map[string]int         // how ticks ended, by the last words of the error
}

// A shared store outlives the Lockers on it.
type shared struct{ *memlock.Store }

func (shared) Close() error { return nil }

func simulate(t *testing.T, test func(c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{T: t, store: shared{memlock.New()}, runs: make(map[time.Time][]string), ends: make(map[string]int)}
		ctx, cancel := context.WithCancel(t.Context())
		c.ctx = ctx
		test(c)
		cancel()
		synctest.Wait()
	})
}

// replica returns the job as one of several processes has it, whose clock is ahead by
// skew.
func (c *cluster) replica(schedule Schedule, skew time.Duration) Job {
	locks := must.Get(holdfast.New(c.store, nil))
	context.AfterFunc(c.ctx, func() { locks.Close() })
	return Job{
		Locks:    locks,
		Name:     "job",
		Schedule: schedule,
		Clock:    func() time.Time { return time.Now().Add(skew) },
		Report: func(tick time.Time, err error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ends[kind(err)]++
		},
	}
}

func kind(err error) string {
	for _, e := range []error{ErrTaken, ErrOverlap, ErrLate, ErrMissed, ErrSetBack, holdfast.ErrLost} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return fmt.Sprint(err)
}

// run notes which tick is run by whom.
func (c *cluster) run(who string) func(context.Context) error {
	return func(ctx context.Context) error {
		tick, ok := Tick(ctx)
		if !ok {
			c.Error("the context has no tick")
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runs[tick.UTC()] = append(c.runs[tick.UTC()], who)
		return nil
	}
}

func (c *cluster) expect(what string, want int, kind error) {
	c.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.ends[fmt.Sprint(kind)]; got != want {
		c.Errorf("%s: %d ticks ended with %v, want %d; all: %v", what, got, kind, want, c.ends)
	}
}

// Clocks may be further apart than the interval: each tick is run once, and none is
// left out.
func TestSkewedReplicas(t *testing.T) {
	for _, interval := range []time.Duration{200 * time.Millisecond, time.Minute, 24 * time.Hour} {
		simulate(t, func(c *cluster) {
			for i, skew := range []time.Duration{0, 150 * time.Millisecond, -300 * time.Millisecond, 29 * time.Second, -29 * time.Second} {
				j := c.replica(Every(interval), skew)
				j.Overlap = Allow // fast clocks and slow ones begin with different ticks
				go j.Loop(c.ctx, c.run(fmt.Sprint(i)))
			}
			const ticks = 20
			first := Every(interval).Next(time.Now())
			time.Sleep(ticks * interval)
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			for n := range time.Duration(ticks) {
				if tick := first.Add(n * interval).UTC(); c.runs[tick] == nil {
					c.Errorf("%v is not run", tick)
				}
			}
			for tick, by := range c.runs {
				if len(by) != 1 || !tick.Equal(tick.Truncate(interval)) {
					c.Errorf("%v is run by %v", tick, by)
				}
			}
			if n := c.ends[ErrLate.Error()]; n > 0 {
				c.Errorf("every %v: %d ticks ended with %v", interval, n, ErrLate)
			}
		})
	}
}

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		overlap                  Overlap
		runs, atOnce, overlapped int
	}{{Skip, 2, 1, 2}, {Delay, 4, 1, 0}, {Allow, 4, 3, 0}} {
		simulate(t, func(c *cluster) {
			running, most, runs := 0, 0, 0
			for range 2 {
				j := c.replica(Every(time.Minute), 0)
				j.Overlap = test.overlap
				go func() { // schedulers start a run though the last one goes on
					for range 4 {
						now := j.now()
						select {
						case <-time.After(j.Schedule.Next(now).Sub(now)):
						case <-c.ctx.Done():
							return
						}
						go j.Run(c.ctx, func(ctx context.Context) error {
							c.mu.Lock()
							runs++
							running++
							most = max(most, running)
							c.mu.Unlock()
							time.Sleep(150 * time.Second)
							c.mu.Lock()
							running--
							c.mu.Unlock()
							if _, locked := holdfast.FromContext(ctx); locked == (test.overlap == Allow) {
								c.Errorf("%v: the run has a lock: %v", test.overlap, locked)
							}
							return nil
						})
					}
				}()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if runs != test.runs || most != test.atOnce {
				c.Errorf("%v: %d runs and %d at once, want %d and %d", test.overlap, runs, most, test.runs, test.atOnce)
			}
			c.expect("overlap", test.overlapped, ErrOverlap)
		})
	}
}

// A replica that comes much too late does not run a tick again, also if nobody
// remembers it.
func TestLate(t *testing.T) {
	simulate(t, func(c *cluster) {
		j := c.replica(Every(24*time.Hour), 0)
		time.Sleep(time.Until(j.Schedule.Next(j.now())) + 2*time.Minute)
		if err := j.Run(c.ctx, c.run("late")); !errors.Is(err, ErrLate) {
			c.Errorf("two minutes after the tick: %v, want ErrLate", err)
		}
		c.expect("two minutes after the tick", 1, ErrLate)
		if _, err := j.Locks.TryLock(c.ctx, j.key(j.now().Truncate(24*time.Hour))); err != nil {
			c.Errorf("who is late has taken the tick: %v", err)
		}

		// And this one was paused on the way.
		time.Sleep(time.Until(j.Schedule.Next(j.now())))
		looks := 0
		j.Clock = func() time.Time {
			if looks++; looks > 2 {
				return time.Now().Add(2 * time.Minute)
			}
			return time.Now()
		}
		if err := j.Run(c.ctx, c.run("late")); !errors.Is(err, ErrLate) {
			c.Errorf("two minutes after it was asked for: %v, want ErrLate", err)
		}
	})
}

// A tick that was taken is not run again if its replica dies in the middle.
func TestTakenForGood(t *testing.T) {
	simulate(t, func(c *cluster) {
		dies, other := c.replica(Every(time.Hour), 0), c.replica(Every(time.Hour), 0)
		time.Sleep(time.Until(dies.Schedule.Next(dies.now())))
		_, err := dies.Take(c.ctx)
		if err != nil {
			c.Fatal(err)
		}
		dies.Locks.Close()
		for range 59 {
			if err := other.Run(c.ctx, c.run("other")); !errors.Is(err, ErrTaken) || !errors.Is(err, holdfast.ErrHeld) {
				c.Errorf("the other: %v, want ErrTaken", err)
			}
			time.Sleep(time.Second)
		}
		c.expect("a tick of one who died", 59, ErrTaken)
	})
}

// On a store that keeps no key for thirty days, such as Redlock, missed ticks are reported.
func TestMissedOnRedlock(t *testing.T) {
	simulate(t, func(c *cluster) {
		nodes := []driver.Store{memlock.New(), memlock.New(), memlock.New()}
		j := c.replica(Every(2*time.Second), 0)
		j.Locks, j.Tolerance = must.Get(holdfast.New(must.Get(redlock.New(nodes, nil)), nil)), time.Second
		defer j.Locks.Close()
		loop := func() (missed int) {
			ctx, stop := context.WithCancel(c.ctx)
			go j.Loop(ctx, c.run("one"))
			time.Sleep(time.Minute)
			stop()
			synctest.Wait()
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.ends[ErrMissed.Error()]
		}
		before := loop()
		time.Sleep(time.Minute)
		if missed := loop() - before; missed != 1 || before > 1 {
			c.Errorf("%d ticks are reported as missed after a pause, and %d before; all: %v", missed, before, c.ends)
		}
	})
}

func TestMissed(t *testing.T) {
	simulate(t, func(c *cluster) {
		j := c.replica(Every(time.Hour), 0)
		ctx, stop := context.WithCancel(c.ctx)
		go j.Loop(ctx, c.run("one"))
		time.Sleep(5*time.Hour + time.Minute)
		c.expect("before the first, there was none to run", 0, ErrMissed)
		stop()
		time.Sleep(time.Hour)
		go j.Loop(c.ctx, c.run("one"))
		time.Sleep(5 * time.Hour)
		c.expect("after a pause", 1, ErrMissed)

		weekly := c.replica(Every(7*24*time.Hour), 0)
		weekly.Name = "weekly"
		go weekly.Loop(c.ctx, c.run("one"))
		time.Sleep(3 * 7 * 24 * time.Hour)
		c.expect("nobody remembers for a week", 1, ErrMissed)
	})
}

// Nights and weekends are not ticks that nobody has run.
func TestMissedNoneOfOfficeHours(t *testing.T) {
	simulate(t, func(c *cluster) {
		j := c.replica(parse(c.T, "CRON_TZ=UTC 0 9-17 * * MON-FRI"), 0)
		go j.Loop(c.ctx, c.run("one"))
		time.Sleep(14 * 24 * time.Hour)
		synctest.Wait()
		c.expect("two weeks", 10*9, nil)
		c.expect("two weeks", 0, ErrMissed)
	})
}

// A run that hangs, and does not heed its context, holds up the others for no longer
// than it may.
func TestMaxHold(t *testing.T) {
	simulate(t, func(c *cluster) {
		hung, other := c.replica(Every(time.Minute), 0), c.replica(Every(time.Minute), 0)
		hung.MaxHold, other.MaxHold = 150*time.Second, 150*time.Second
		let, result := make(chan struct{}), make(chan error)
		time.Sleep(time.Until(hung.Schedule.Next(hung.now())))
		go func() {
			result <- hung.Run(c.ctx, func(ctx context.Context) error {
				<-let
				return context.Cause(ctx)
			})
		}()
		synctest.Wait()
		go other.Loop(c.ctx, c.run("other"))
		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		c.expect("one run of five hangs", 2, ErrOverlap)
		c.expect("one run of five hangs", 3, nil)
		close(let)
		var lost *holdfast.LostError
		if err := <-result; !errors.As(err, &lost) || lost.Reason != holdfast.LossMaxHold {
			c.Errorf("the run that hung returned %v, want what became of its lock", err)
		}
	})
}

// The run is told that its lock is lost.
func TestLost(t *testing.T) {
	simulate(t, func(c *cluster) {
		j := c.replica(Every(time.Hour), 0)
		time.Sleep(time.Until(j.Schedule.Next(j.now())))
		err := j.Run(c.ctx, func(ctx context.Context) error {
			holders, err := j.Locks.Holders(ctx, "job")
			if err != nil {
				return err
			}
			if err := j.Locks.Break(ctx, "job", holders[0].ID); err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, holdfast.ErrLost) {
			c.Errorf("the run returned %v, want ErrLost", err)
		}
		c.expect("a lost lock", 1, holdfast.ErrLost)
	})
}

func TestPanicIsReported(t *testing.T) {
	simulate(t, func(c *cluster) {
		j := c.replica(Every(time.Hour), 0)
		time.Sleep(time.Until(j.Schedule.Next(j.now())))
		defer func() {
			if recover() == nil {
				c.Error("the panic is gone")
			}
			c.expect("a panic", 0, nil)
		}()
		_ = j.Run(c.ctx, func(context.Context) error { panic("oh") })
	})
}

func TestInput(t *testing.T) {
	simulate(t, func(c *cluster) {
		for want, change := range map[string]func(*Job){
			"Locks":     func(j *Job) { j.Locks = nil },
			"Name":      func(j *Job) { j.Name = "" },
			"Schedule":  func(j *Job) { j.Schedule = nil },
			"use Every": func(j *Job) { j.Schedule = parse(c.T, "@every 7m") },
			"Tolerance": func(j *Job) { j.Tolerance = -1 },
			"Overlap":   func(j *Job) { j.Overlap = 7 },
			"MaxHold":   func(j *Job) { j.MaxHold = -1 },
			"Allow":     func(j *Job) { j.MaxHold, j.Overlap = 1, Allow },
			"bytes":     func(j *Job) { j.Name = strings.Repeat("n", 10<<20) },
		} {
			j := c.replica(Every(time.Minute), 0)
			change(&j)
			for _, err := range []error{j.Run(c.ctx, nil), j.Loop(c.ctx, nil)} {
				if !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
					c.Errorf("got %.500v, want a short ErrInvalid about %s", err, want)
				}
			}
		}
	})
}
