package elect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// A term is the time for which a candidate leads.
type term struct {
	*candidate
	lock     *holdfast.Lock
	ctx      context.Context // of fn
	end      context.CancelCauseFunc
	returned chan struct{} // closed when fn has returned
	guarded  sync.WaitGroup
}

// lead calls fn, unless the check fails before. lead returns the result of fn, and the
// reason why the term ended before fn returned; nil if the term had not ended.
func (c *candidate) lead(ctx context.Context, lock *holdfast.Lock) (result, ended error) {
	t := &term{candidate: c, lock: lock, returned: make(chan struct{})}
	t.ctx, t.end = context.WithCancelCause(lock.Context(ctx))
	defer func() { ended = t.finish() }() // also if fn panics
	if err := c.check.fit(t.ctx); err != nil {
		t.end(err)
	}
	if t.ctx.Err() != nil {
		return ctx.Err(), nil
	}
	t.guarded.Go(t.guard)
	return c.fn(t.ctx), nil
}

// finish releases the lock, and returns why the term had ended before.
func (t *term) finish() error {
	ended := context.Cause(t.ctx)
	close(t.returned)
	t.end(nil)
	t.guarded.Wait()
	err := t.lock.Unlock()
	switch {
	case ended == nil && errors.Is(err, holdfast.ErrLost):
		return err
	case err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, holdfast.ErrReleased):
		t.report(fmt.Errorf("elect: %s: %w", shown.Key(t.job), err)) // the release goes on in the background
	}
	return ended
}

// guard ends the context of fn when the term is over. If fn does not return in time, guard
// releases the lock, so that other candidates need not wait for a stuck process.
func (t *term) guard() {
	if why := t.watch(); why != nil {
		t.end(why)
	}
	if t.returns(t.grace) {
		return
	}
	t.report(fmt.Errorf("elect: %s: %w: it has not returned %v after its context ended", shown.Key(t.job), ErrStuck, t.grace))
	_ = t.lock.Unlock() // if the release fails, the lock expires with its TTL
}

// returns reports whether fn returns within d.
func (t *term) returns(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.returned:
		return true
	case <-timer.C:
	}
	select {
	case <-t.returned: // just then, or already before a grace of 0
		return true
	default:
		return false
	}
}

// watch returns why the term is over; nil if its context has ended already.
func (t *term) watch() error {
	var over, due <-chan time.Time
	if t.maxTerm > 0 {
		timer := time.NewTimer(t.maxTerm)
		defer timer.Stop()
		over = timer.C
	}
	if t.check != nil {
		ticker := time.NewTicker(t.check.every)
		defer ticker.Stop()
		due = ticker.C
	}
	for {
		select {
		case <-t.ctx.Done():
			return nil
		case <-over:
			return fmt.Errorf("%w: it has led for %v", ErrStepDown, t.maxTerm)
		case <-due:
			if err := t.check.fit(t.ctx); err != nil {
				return err
			}
		}
	}
}
