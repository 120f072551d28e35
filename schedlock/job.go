package schedlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// Reasons why a tick was not run.
var (
	// ErrTaken: another replica runs the tick, or has run it. Most ticks end with ErrTaken
	// on most replicas.
	ErrTaken = errors.New("tick is taken by another")

	// ErrOverlap: the last run still goes on. No replica runs the tick.
	ErrOverlap = errors.New("the last run still goes on")

	// ErrLate: this replica came later than the tolerance allows.
	ErrLate = errors.New("too late for the tick")

	// ErrMissed: nobody has taken the tick. ErrMissed is only reported.
	ErrMissed = errors.New("nobody has run the tick")

	// ErrSetBack: the clock of this replica was set back while [Job.Loop] waited.
	// ErrSetBack is only reported, with the tick that is run next on this replica. The
	// ticks before it were run or skipped by the earlier reading of the clock.
	ErrSetBack = errors.New("the clock was set back")
)

// Overlap is the treatment of a tick that is due while the run of an earlier tick still
// goes on, on this or another replica.
type Overlap int

const (
	Skip  Overlap = iota // the tick is not run: ErrOverlap
	Delay                // the tick is run after the earlier runs, in FIFO order
	Allow                // the tick is run beside the earlier run, without a lock for its length
)

// A Job runs on a single replica at each tick of a schedule. A Job is only a description,
// and may be copied. Replicas must agree in all fields but Report.
type Job struct {
	Locks *holdfast.Locker

	// Name is the key of the lock that is held for the length of a run, and the prefix of
	// the keys of the ticks. Name has at most 470 bytes of UTF-8.
	Name string

	Schedule Schedule

	// Overlap decides about ticks that are due while an earlier run goes on. Default: Skip.
	Overlap Overlap

	// Tolerance is how far the clocks of the replicas may differ, and how late a replica
	// may come to a tick and still run the tick. Default: a minute. At most a day. The key
	// of a tick stays in the store for three times the tolerance plus the time to the next
	// tick, which counts as a day at most.
	Tolerance time.Duration

	// MaxHold is how long a run may take. After that the lock is lost, as by
	// [holdfast.MaxHold]: the context of the run ends, and later ticks are run even if
	// the run has not returned. Default: no limit. With [Allow], a run has no lock, and
	// MaxHold is refused.
	MaxHold time.Duration

	// Clock returns the time of this replica. Default: time.Now. Clock must be the clock of
	// the scheduler.
	Clock func() time.Time

	// Report receives the outcome of each tick on this replica: nil if the tick was run,
	// the error that the run returned, or the reason why the tick was not run.
	//
	// Report also receives ErrMissed for the previous tick, once for all replicas, if
	// nobody had taken that tick by then. ErrMissed is a guess: a replica may still come if
	// its clock is behind by more than the interval. A job that was not run for thirty days
	// starts anew, and has missed no tick: the key that remembers the job is Name +
	// "@known". On a store that keeps no key for so long, such as Redlock, the tick before
	// the first tick is reported too. A store without [driver.Inspector] reports no missed
	// ticks. Default: no reports.
	//
	// [driver.Inspector]: https://pkg.go.dev/github.com/holdfast-go/holdfast/driver#Inspector
	Report func(tick time.Time, err error)
}

const (
	day       = 24 * time.Hour
	timestamp = "2006-01-02T15:04:05.999999999Z07:00"
)

// Run runs the tick that is due now, unless another replica does. The context of fn carries
// the [Tick] and the lock, and ends when the lock is lost; with [Allow] there is no lock.
// Run returns the result of fn, with an error that matches [holdfast.ErrLost] if the lock
// was lost before. If fn was not called, Run returns the reason: [ErrTaken], [ErrOverlap],
// [ErrLate], an error of the store, or [holdfast.ErrInvalid] for an invalid Job. If ctx
// ends before the tick is taken, nobody has run the tick.
func (j Job) Run(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	turn, err := j.Take(ctx)
	if err != nil {
		return err
	}
	err = errors.New("the run did not return")
	defer func() { err = turn.end(err) }()
	err = fn(turn.Context(ctx))
	return err
}

// Func returns a function for a scheduler, which calls Run. Only Report receives the result
// of Run.
func (j Job) Func(ctx context.Context, fn func(ctx context.Context) error) func() {
	return func() { _ = j.Run(ctx, fn) }
}

// Loop calls Run at each tick. Loop ends when ctx ends, with the error of ctx, or when Run
// returns [holdfast.ErrInvalid] or [holdfast.ErrClosed]. Only Report receives other errors.
// Ticks that are due during a run on this replica are left to the other replicas.
//
// If the clock is set, Loop follows within a minute: Loop waits for the next tick by the
// new time of the clock. Ticks that Loop has reached before are left to the other replicas.
// If the clock is set back by more than the tolerance, Report receives [ErrSetBack].
func (j Job) Loop(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := j.check(); err != nil {
		return err
	}
	if err := sound(j.Schedule, j.now()); err != nil {
		return j.invalid(err)
	}
	var c course
	for {
		if err := j.await(ctx, &c); err != nil {
			return err
		}
		err := j.Run(ctx, fn)
		if errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrClosed) {
			return err
		}
	}
}

// await returns at the next tick, or with the error of ctx. await looks at the clock
// repeatedly, because the clock may be set, and the machine may sleep.
func (j Job) await(ctx context.Context, c *course) error {
	var next time.Time
	for due := false; ; {
		now := j.now()
		back := c.look(now, j.tolerance())
		if due && back == 0 {
			c.reach(next) // A timer may be early.
			return nil
		}
		next = c.next(j.Schedule, now)
		if back > 0 {
			j.report(next, fmt.Errorf("schedlock: job %s at %s: %w by %v: this is the next tick here", shown.Key(j.Name), next.Format(timestamp), ErrSetBack, back))
		}
		left := next.Sub(now)
		timer := time.NewTimer(min(left, time.Minute))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		due = left <= time.Minute
	}
}

// now is the time of the wall clock, without a monotonic reading.
func (j Job) now() time.Time {
	if j.Clock == nil {
		return time.Now().Round(0)
	}
	return j.Clock().Round(0)
}

func (j Job) tolerance() time.Duration { return cmp.Or(j.Tolerance, time.Minute) }

// check returns an error if the Job is invalid.
func (j Job) check() error {
	wrong := ""
	switch {
	case j.Locks == nil:
		wrong = "Locks is nil"
	case j.Name == "":
		wrong = "Name is empty"
	case j.Schedule == nil:
		wrong = "Schedule is nil"
	case j.Tolerance < 0 || j.Tolerance > day:
		wrong = fmt.Sprintf("Tolerance is %v; it must be from 0 to %v", j.Tolerance, day)
	case j.Overlap < Skip || j.Overlap > Allow:
		wrong = fmt.Sprintf("Overlap is %d; it must be Skip, Delay or Allow", j.Overlap)
	case j.MaxHold < 0:
		wrong = fmt.Sprintf("MaxHold is %v; it must be above 0, or 0 for no limit", j.MaxHold)
	case j.MaxHold > 0 && j.Overlap == Allow:
		wrong = "MaxHold limits a lock, and Allow takes none"
	default:
		return nil
	}
	return j.invalid(errors.New(wrong))
}

func (j Job) invalid(err error) error {
	return fmt.Errorf("schedlock: job %s: %w: %w", shown.Key(j.Name), err, holdfast.ErrInvalid)
}
