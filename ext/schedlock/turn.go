package schedlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A Turn is a tick that this replica runs.
type Turn struct {
	Tick time.Time

	job  Job
	lock *holdfast.Lock // nil with Allow
}

// Take takes the tick that is due now, for a scheduler that runs the job by itself.
// Call Unlock when the job has run. The errors are those of [Job.Run].
func (j Job) Take(ctx context.Context) (*Turn, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	t, err := due(j.Schedule, j.now(), j.tolerance())
	if err != nil {
		return nil, fmt.Errorf("schedlock: job %q: %w: %w", j.Name, err, holdfast.ErrInvalid)
	}
	turn, err := j.take(ctx, t)
	if err != nil {
		err = fmt.Errorf("schedlock: job %q at %s: %w", j.Name, t.at.Format(timestamp), err)
		j.report(t.at, err)
		return nil, err
	}
	return turn, nil
}

func (j Job) take(ctx context.Context, t tick) (*Turn, error) {
	if j.late(t) {
		return nil, ErrLate
	}
	if err := j.mark(ctx, t); err != nil {
		return nil, err
	}
	j.lookBack(ctx, t)
	if j.late(t) { // and by now those who come after it might find the mark gone
		return nil, ErrLate
	}
	turn := &Turn{Tick: t.at, job: j}
	var limit []holdfast.LockOption
	if j.MaxHold > 0 {
		limit = append(limit, holdfast.MaxHold(j.MaxHold))
	}
	var err error
	switch j.Overlap {
	case Skip:
		turn.lock, err = j.Locks.TryLock(ctx, j.Name, limit...)
	case Delay:
		turn.lock, err = j.Locks.Lock(ctx, j.Name, limit...)
	}
	if j.Overlap == Skip && errors.Is(err, holdfast.ErrHeld) {
		err = fmt.Errorf("%w: %w", ErrOverlap, err)
	}
	return turn, err
}

// mark takes the key of a tick, for longer than anybody comes for it. It is given
// back at once, so that nothing this process does or suffers ends it any more.
func (j Job) mark(ctx context.Context, t tick) error {
	keep := 3*j.tolerance() + min(t.gap, day)
	mark, err := j.Locks.TryLock(ctx, j.key(t.at), holdfast.AtLeast(keep))
	if errors.Is(err, holdfast.ErrHeld) {
		return fmt.Errorf("%w: %w", ErrTaken, err)
	}
	if err != nil {
		return err
	}
	return mark.Unlock() // If that fails, it is not certain that the mark stays.
}

// lookBack reports the tick before if nobody has taken it.
func (j Job) lookBack(ctx context.Context, t tick) {
	before := last(j.Schedule, t.at.Add(-1), t.gap)
	if j.Report == nil || before.IsZero() || t.at.Sub(before) > day {
		return
	}
	holders, err := j.Locks.Holders(ctx, j.key(before))
	if err == nil && len(holders) == 0 {
		j.Report(before, fmt.Errorf("schedlock: job %q at %s: %w", j.Name, before.Format(timestamp), ErrMissed))
	}
}

func (j Job) late(t tick) bool { return j.now().Sub(t.at) > j.tolerance() }

func (j Job) key(tick time.Time) string { return j.Name + "@" + tick.UTC().Format(timestamp) }

func (j Job) report(tick time.Time, err error) {
	if j.Report != nil {
		j.Report(tick, err)
	}
}

// Context returns a copy of parent that carries the tick, and the lock of the run, with
// which it ends; with [Allow] there is none.
func (t *Turn) Context(parent context.Context) context.Context {
	ctx := context.WithValue(parent, current{}, t.Tick)
	if t.lock == nil {
		return ctx
	}
	return t.lock.Context(ctx)
}

// current is the context key of a tick.
type current struct{}

// Tick returns the tick that is run under ctx: not when the run began, but when it was
// due, which is the same whoever runs it.
func Tick(ctx context.Context) (time.Time, bool) {
	tick, ok := ctx.Value(current{}).(time.Time)
	return tick, ok
}

// Unlock ends the run. It returns an error that matches [holdfast.ErrLost] if the lock
// was lost before. The tick stays taken.
func (t *Turn) Unlock() error { return t.end(nil) }

// end reports what a run has returned, and what became of its lock.
func (t *Turn) end(result error) error {
	err := result
	if t.lock != nil {
		err = errors.Join(err, t.lock.Unlock())
	}
	t.job.report(t.Tick, err)
	return err
}
