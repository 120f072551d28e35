package schedlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Why a tick was not run.
var (
	// ErrTaken: another replica runs the tick, or has run it. This is how most
	// ticks end on most replicas.
	ErrTaken = errors.New("tick is taken by another")

	// ErrOverlap: the last run still goes on. Nobody runs the tick.
	ErrOverlap = errors.New("the last run still goes on")

	// ErrLate: this replica came later than the tolerance allows.
	ErrLate = errors.New("too late for the tick")

	// ErrMissed: nobody has taken the tick. It is only reported.
	ErrMissed = errors.New("nobody has run the tick")
)

// Overlap says what happens to a tick that is due while the run of an earlier one
// still goes on, here or elsewhere.
type Overlap int

const (
	Skip  Overlap = iota // it is not run: ErrOverlap
	Delay                // it is run after the others, in the order of their coming
	Allow                // it is run beside the other, without a lock for its length
)

// A Job runs on one of several replicas at each tick of a schedule. It is a
// description only, and may be copied. Replicas must agree in all but Report.
type Job struct {
	Locks *holdfast.Locker

	// Name is the key of the lock that is held for the length of a run, and the
	// beginning of those of the ticks. It has at most 470 bytes of UTF-8.
	Name string

	Schedule Schedule

	// Overlap is what happens while an earlier run goes on. Default: Skip.
	Overlap Overlap

	// Tolerance is how far the clocks of the replicas may be apart, and by how
	// much a replica may come late to a tick and still run it. Default: a minute.
	// At most a day. The key of a tick stays in the store for three times as long,
	// and until the next tick, if that is no further away than a day.
	Tolerance time.Duration

	// MaxHold is how long a run may take. After that its lock is lost, as by
	// [holdfast.MaxHold]: its context ends, and later ticks are run though it may
	// not have returned. Default: as long as it wants. [Allow] takes no lock, and
	// none of these.
	MaxHold time.Duration

	// Clock tells the time to this replica. Default: time.Now. It must be that of
	// the scheduler.
	Clock func() time.Time

	// Report is told of each tick what became of it here: nil if it was run, what
	// the run returned, or why it was not run. It is also told of the tick before,
	// once for all replicas, if nobody had taken it by then: ErrMissed. That is a
	// guess: a replica whose clock is further behind than the interval is long may
	// still come; and a job that has never run before has missed a tick, too. A
	// store without [driver.Inspector] cannot tell. Default: nobody is told.
	//
	// [driver.Inspector]: https://pkg.go.dev/github.com/holdfast-go/holdfast/driver#Inspector
	Report func(tick time.Time, err error)
}

const (
	day       = 24 * time.Hour
	timestamp = "2006-01-02T15:04:05.999999999Z07:00"
)

// Run runs the tick that is due now, unless another replica does. The context of fn
// carries the [Tick] and the lock, and ends when that is lost; with [Allow] there is no
// lock. Run returns what fn returned, with an error that matches [holdfast.ErrLost] if
// the lock was lost before, or why fn was not called: [ErrTaken], [ErrOverlap],
// [ErrLate], an error of the store, or [holdfast.ErrInvalid] for a Job that is not well
// described. If ctx ends before the tick is taken, nobody has run it.
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

// Func returns a function for a scheduler, which calls Run. What that returns only
// Report tells.
func (j Job) Func(ctx context.Context, fn func(ctx context.Context) error) func() {
	return func() { _ = j.Run(ctx, fn) }
}

// Loop calls Run at each tick, until ctx ends, and returns the error of ctx; or until
// Run returns [holdfast.ErrInvalid] or [holdfast.ErrClosed]. Other errors only Report
// tells. Ticks that are due during a run on this replica are left to the others, and so
// are those that a Clock which was set back comes to again.
func (j Job) Loop(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := j.check(); err != nil {
		return err
	}
	next := j.now()
	for {
		now := j.now()
		if now.Before(next) { // a timer was early
			now = next
		}
		next = j.Schedule.Next(now)
		if err := j.sleep(ctx, next); err != nil {
			return err
		}
		err := j.Run(ctx, fn)
		if errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrClosed) {
			return err
		}
	}
}

// sleep returns at a time, or with the error of ctx. It looks at the clock now and
// then, because that may be set, and the machine asleep.
func (j Job) sleep(ctx context.Context, until time.Time) error {
	for {
		left := until.Sub(j.now())
		timer := time.NewTimer(min(left, time.Minute))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		if left <= time.Minute {
			return nil
		}
	}
}

// now is a wall clock's time, without a monotonic one's beside it.
func (j Job) now() time.Time {
	if j.Clock == nil {
		return time.Now().Round(0)
	}
	return j.Clock().Round(0)
}

func (j Job) tolerance() time.Duration { return cmp.Or(j.Tolerance, time.Minute) }

// check returns what is wrong with the description.
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
	return fmt.Errorf("schedlock: job %q: %s: %w", j.Name, wrong, holdfast.ErrInvalid)
}
