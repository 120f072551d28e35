package elect

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// A leader whose check fails steps down, and leads again when it is fit.
func TestUnfitStepsDown(t *testing.T) {
	simulate(t, func(b *bench) {
		var sick atomic.Bool
		var asked atomic.Int64
		bad := errors.New("no work for a minute")
		var cause error
		r := b.run(func(ctx context.Context) error {
			err := lead(ctx)
			cause = context.Cause(ctx)
			return err
		}, Check(10*time.Second, func(context.Context) error {
			asked.Add(1)
			if sick.Load() {
				return bad
			}
			return nil
		}))
		after(time.Hour)
		b.expect("fit", r, 1, 1)
		sick.Store(true)
		after(10 * time.Second)
		b.expect("unfit", r, 1, 0)
		b.reported(r, bad)
		if !errors.Is(cause, ErrUnfit) || !errors.Is(cause, bad) {
			b.Errorf("the cause is %v", cause)
		}
		after(time.Hour)
		b.expect("still unfit", r, 1, 0)
		if n := asked.Load(); n < 700 || n > 725 {
			b.Errorf("asked %d times in two hours, want every 10 seconds", n)
		}
		sick.Store(false)
		after(10 * time.Second)
		b.expect("fit again", r, 2, 1)
	})
}

// A check that hangs is one that fails, and is not asked again meanwhile.
func TestHangingCheck(t *testing.T) {
	simulate(t, func(b *bench) {
		let := make(chan struct{})
		var asked atomic.Int64
		r := b.run(lead, Check(time.Second, func(context.Context) error {
			if asked.Add(1) > 1 {
				<-let
			}
			return nil
		}))
		b.expect("at first", r, 1, 1)
		after(2 * time.Second)
		b.expect("hanging", r, 1, 0)
		b.reported(r, ErrUnfit)
		after(time.Hour)
		b.expect("hanging on", r, 1, 0)
		if n := asked.Load(); n != 2 {
			b.Errorf("asked %d times", n)
		}
		close(let)
		after(2 * aside)
		b.expect("fit again", r, 2, 1)
	})
}

// A leader that is stuck, in a process that is well, is replaced.
func TestStuckWorkerIsReplaced(t *testing.T) {
	simulate(t, func(b *bench) {
		let := make(chan struct{})
		began := time.Now()
		r := b.run(func(context.Context) error { <-let; return nil },
			Check(time.Second, func(context.Context) error {
				if time.Since(began) > time.Minute {
					return errors.New("no progress")
				}
				return nil
			}), Grace(5*time.Second))
		after(30 * time.Second)
		next := b.run(lead)
		after(30 * time.Second)
		b.expect("the next", next, 0, 0)
		after(7 * time.Second)
		b.expect("the next, when one is stuck", next, 1, 1)
		b.expect("the stuck one", r, 1, 1)
		close(let)
		after(time.Hour)
		b.expect("the stuck one, when it goes on", r, 1, 0)
	})
}

// The end of a term does not count as a failed check.
func TestCheckAtTheEnd(t *testing.T) {
	simulate(t, func(b *bench) {
		r := b.run(func(ctx context.Context) error {
			time.Sleep(1500 * time.Millisecond) // while the check is being asked
			return nil
		}, Check(time.Second, func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(900 * time.Millisecond):
				return nil
			}
		}))
		if err := <-r.result; err != nil || len(r.reports) > 0 {
			b.Errorf("Run returned %v and reported %d", err, len(r.reports))
		}
	})
}
