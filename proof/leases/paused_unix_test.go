//go:build unix

package leases

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/internal/wallclock"
)

func init() { jobs["write again"] = (*process).writeAgain }

// writeAgain locks and writes, and once it is told to end looks at its lock, and
// tries to write once more.
func (p *process) writeAgain(told context.Context) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	lock, token, err := p.lockAlive(ctx, "paused")
	if err != nil {
		return err
	}
	work := lock.Context(ctx)
	if err := p.write(ctx, token); err != nil {
		return err
	}
	fmt.Println("written")
	<-told.Done()
	found := lock.Err()
	<-work.Done() // The goroutine that ends the lock cancels its contexts right after.
	lost := errors.Is(found, holdfast.ErrLost) && errors.Is(context.Cause(work), holdfast.ErrLost)
	late := p.write(ctx, token)
	fmt.Println(lost, errors.Is(late, fence.ErrOutdated))
	if !lost || !errors.Is(late, fence.ErrOutdated) {
		return fmt.Errorf("the lock has ended with %v, its context with %v, and the write with %v", found, context.Cause(work), late)
	}
	return nil
}

// lockAlive locks a key, again if the lock is lost before its token is read: on a busy
// machine a worker may not run for longer than its TTL.
func (p *process) lockAlive(ctx context.Context, key string) (lock *holdfast.Lock, token uint64, err error) {
	for token == 0 && err == nil {
		if lock, err = servers.Patient(ctx, p.locks.Lock, key); err == nil {
			token = lock.Fence()
		}
	}
	return lock, token, err
}

// write writes the token down, if it is not outdated.
func (p *process) write(ctx context.Context, token uint64) error {
	tx, err := p.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := p.fences.Check(ctx, tx, "paused", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE written SET token = "+p.place(1), int64(token)); err != nil {
		return err
	}
	return tx.Commit()
}

// A holder is stopped for longer than its TTL. Another is let in meanwhile and
// writes. The first one, when it goes on, finds its lock ended at its first look,
// and what it then writes all the same is refused.
func TestPausedHolder(t *testing.T) {
	for _, mode := range []string{"lease", "session"} {
		t.Run(mode, func(t *testing.T) {
			each(t, func(t *testing.T, e *engine) {
				at, _ := separate(t, e, "paused_"+mode)
				if mode == "session" {
					at = inSessions(t, at)
				}
				started := time.Now()
				p := tables(t, at, "CREATE TABLE written (token bigint)", "INSERT INTO written VALUES (0)")
				locks := locker(t, at, &holdfast.Options{TTL: patience})
				paused := hire(t, "write again", at)
				if _, err := paused.out.ReadString('\n'); err != nil {
					t.Fatalf("the holder has not begun: %v", err)
				}
				succeed(t, paused.Process.Signal(syscall.SIGSTOP))
				began := time.Now()
				next := lock(t, locks, "paused")
				t.Logf("another was let in after %v", time.Since(began))
				token := next.Fence()
				succeed(t, p.write(t.Context(), token))
				succeed(t, paused.In.Close())
				succeed(t, paused.Process.Signal(syscall.SIGCONT))

				var lost, outdated bool
				if _, err := fmt.Fscan(paused.out, &lost, &outdated); err != nil || !lost || !outdated {
					if mode == "lease" && outdated && wallclock.SetBy(started) != 0 {
						unproved.Skipf(t, "the clock was set, and the server ends a lease by the clock")
					}
					t.Errorf("on waking it knows that the lock is lost: %t, and its write is refused as outdated: %t; %v", lost, outdated, err)
				}
				if err := paused.Wait(); err != nil {
					t.Errorf("the worker ended with %v", err)
				}
				var written uint64
				succeed(t, p.db.QueryRowContext(t.Context(), "SELECT token FROM written").Scan(&written))
				if written != token {
					t.Errorf("token %d is written, want %d", written, token)
				}
			})
		})
	}
}

// inSessions is a URL for locks of sessions instead of those of a table.
func inSessions(t *testing.T, at string) string {
	t.Helper()
	at = with(without(at, "table"), "mode", "session")
	succeed(t, openAny(t, at).(driver.Creator).Create(t.Context()))
	return at
}
