package schedlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// A Turn is a tick that this replica runs.
type Turn struct {
	Tick time.Time

	job  Job
	lock *holdfast.Lock // nil with Allow
}

// Take takes the tick that is due now, for a scheduler that runs the job by itself. Call
// Unlock when the job has run. Take returns the errors of [Job.Run].
func (j Job) Take(ctx context.Context) (*Turn, error) {
	if err := j.check(); err != nil {
		return nil, err
	}
	t, err := due(j.Schedule, j.now(), j.tolerance())
	if err != nil {
		return nil, j.invalid(err)
	}
	turn, err := j.take(ctx, t)
	if err != nil {
		err = fmt.Errorf("schedlock: job %s at %s: %w", shown.Key(j.Name), t.at.Format(timestamp), err)
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
	if j.late(t) { // by now, the key may expire before the last replicas come
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
	if j.Overlap == Skip && j.taken(ctx, j.Name, err) {
		err = fmt.Errorf("%w: %w", ErrOverlap, err)
	}
	return turn, err
}

// mark takes the key of a tick, for longer than any replica may come late. The lock of the
// key is released at once: from then on the key stays, regardless of this process.
func (j Job) mark(ctx context.Context, t tick) error {
	keep := 3*j.tolerance() + min(t.gap, day)
	key := j.key(t.at)
	mark, err := j.Locks.TryLock(ctx, key, holdfast.MinHold(keep))
	if err != nil {
		if j.taken(ctx, key, err) {
			err = fmt.Errorf("%w: %w", ErrTaken, err)
		}
		return err
	}
	return mark.Unlock() // After an error, it is not certain that the key stays.
}

// taken reports whether a lock was refused because another has the key. A store may refuse a lock for
// a reason of its own, as Redlock does after a restart of its nodes: nobody may have the key then.
func (j Job) taken(ctx context.Context, key string, err error) bool {
	var held *holdfast.HeldError
	if !errors.As(err, &held) || held.Err == nil {
		return held != nil
	}
	holders, err := j.Locks.Holders(ctx, key)
	return err == nil && slices.ContainsFunc(holders, func(h holdfast.Holder) bool { return !h.Waiting })
}

// lookBack reports the previous tick if nobody has taken it.
func (j Job) lookBack(ctx context.Context, t tick) {
	before := last(j.Schedule, t.at.Add(-1), t.gap)
	if j.Report == nil || before.IsZero() || t.at.Sub(before) > day {
		return
	}
	if !j.known(ctx) {
		return
	}
	holders, err := j.Locks.Holders(ctx, j.key(before))
	if err == nil && len(holders) == 0 {
		j.Report(before, fmt.Errorf("schedlock: job %s at %s: %w", shown.Key(j.Name), before.Format(timestamp), ErrMissed))
	}
}

// memory is how long a store remembers that a job was run.
const memory = 30 * day

// known reports whether the job was run before this tick. For an unknown job, the previous
// tick cannot have been missed. A store that keeps no key for so long cannot tell: then the
// job counts as known.
func (j Job) known(ctx context.Context) bool {
	mark, err := j.Locks.TryLock(ctx, j.Name+"@known", holdfast.MinHold(memory))
	if err == nil {
		err = mark.Unlock() // The key stays for its time.
	}
	return errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrInvalid)
}

func (j Job) late(t tick) bool { return j.now().Sub(t.at) > j.tolerance() }

func (j Job) key(tick time.Time) string { return j.Name + "@" + tick.UTC().Format(timestamp) }

func (j Job) report(tick time.Time, err error) {
	if j.Report != nil {
		j.Report(tick, err)
	}
}

// Context returns a copy of parent that carries the tick and the lock of the run. The copy
// ends with the lock; with [Allow] there is no lock.
func (t *Turn) Context(parent context.Context) context.Context {
	ctx := context.WithValue(parent, current{}, t.Tick)
	if t.lock == nil {
		return ctx
	}
	return t.lock.Context(ctx)
}

// current is the context key of a tick.
type current struct{}

// Tick returns the tick that is run under ctx: the time when the tick was due, not when the
// run began. The tick is the same on every replica.
func Tick(ctx context.Context) (time.Time, bool) {
	tick, ok := ctx.Value(current{}).(time.Time)
	return tick, ok
}

// Unlock ends the run. If the lock was lost before, the error matches [holdfast.ErrLost].
// The tick stays taken.
func (t *Turn) Unlock() error { return t.end(nil) }

// end reports the result of a run, and the error of its lock.
func (t *Turn) end(result error) error {
	err := result
	if t.lock != nil {
		err = errors.Join(err, t.lock.Unlock())
	}
	t.job.report(t.Tick, err)
	return err
}
