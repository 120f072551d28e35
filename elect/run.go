package elect

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// Reasons for the end of a term. The loss of the lock has an error that matches
// [holdfast.ErrLost] instead.
var (
	// ErrStepDown: the leader hands over. The function of a leader returns ErrStepDown to
	// hand over. When MaxTerm is over, ErrStepDown is the cause of the function's
	// context.
	ErrStepDown = errors.New("leader steps down")

	// ErrUnfit: the Check of the leader has failed.
	ErrUnfit = errors.New("leader is not fit to lead")

	// ErrStuck: the function of a leader did not return within its Grace. ErrStuck is only
	// reported.
	ErrStuck = errors.New("leader does not stop")
)

// Pauses between two campaigns of a process.
const (
	shortest = 100 * time.Millisecond // at first, and twice as long after each failure
	patience = time.Second            // at most, so that a job is not without a leader for long
	aside    = 2 * time.Second        // after a hand-over: every waiter has retried within a second
)

// Run campaigns for a job, calls fn while this process leads, and campaigns again when
// the term has ended (see the package comment). The context of fn carries the lock (see
// [holdfast.FromContext]), and ends before another process can lead; the cause of the
// context is the reason. The job is the key of the lock. Run calls fn in the goroutine of
// its caller.
//
// Run returns the result of fn if ctx has ended, or if fn returned before its context
// ended and the result is not [ErrStepDown]. If ctx ends while another process leads, the
// error matches the error of ctx. While the store fails, Run retries. Run returns an
// error of the lock only if a retry cannot help: [holdfast.ErrInvalid] for bad input or a
// store that can never grant the lock, [holdfast.ErrDeadlock] if ctx already carries the
// lock of the job, or [holdfast.ErrClosed] once the Locker is closed.
func Run(ctx context.Context, locks *holdfast.Locker, job string, fn func(ctx context.Context) error, opts ...Option) error {
	s := resolve(opts)
	if fn == nil {
		s.require(errors.New("Run needs a function"))
	}
	if err := errors.Join(s.errs...); err != nil {
		return fmt.Errorf("elect: %s: %w: %w", shown.Key(job), err, holdfast.ErrInvalid)
	}
	c := &candidate{settings: s, locks: locks, job: job, fn: fn}
	for {
		over, err := c.campaign(ctx)
		if over {
			return err
		}
		s.report(fmt.Errorf("elect: %s: %w", shown.Key(job), err))
		if err := rest.For(ctx, c.pause(err)); err != nil {
			return fmt.Errorf("elect: %s: %w", shown.Key(job), err)
		}
	}
}

// A candidate is a call of Run.
type candidate struct {
	settings
	locks    *holdfast.Locker
	job      string
	fn       func(context.Context) error
	failures int // consecutive campaigns that led to no term, or only to a short term
}

// campaign queues for the lock and leads for a term. campaign reports whether Run is over,
// with the result of Run, or else with the reason to go on.
func (c *candidate) campaign(ctx context.Context) (over bool, err error) {
	lock, err := c.locks.Lock(ctx, c.job, c.lock...)
	if err != nil {
		c.failures++
		return ctx.Err() != nil || final(err), err
	}
	began := time.Now()
	result, ended := c.lead(ctx, lock)
	if c.failures++; time.Since(began) > patience {
		c.failures = 1
	}
	switch {
	case ctx.Err() != nil, ended == nil && !errors.Is(result, ErrStepDown):
		return true, result
	case ended == nil:
		return false, result
	case result == nil:
		return false, ended
	}
	return false, fmt.Errorf("%w; the leader returned: %w", ended, result)
}

// final reports whether a retry cannot help.
func final(err error) bool {
	return errors.Is(err, holdfast.ErrClosed) || errors.Is(err, holdfast.ErrDeadlock) || errors.Is(err, holdfast.ErrInvalid)
}

// pause returns the time to wait after a campaign that ended for the given reason.
func (c *candidate) pause(why error) time.Duration {
	switch {
	case c.check != nil && errors.Is(why, ErrUnfit):
		return max(aside, c.check.every)
	case errors.Is(why, ErrStepDown):
		return aside
	}
	d := min(shortest<<min(c.failures-1, 10), patience)
	return d/2 + rand.N(d/2)
}
