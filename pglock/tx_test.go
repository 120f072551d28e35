package pglock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/pglock"
)

func TestTransactionLocks(t *testing.T) {
	tests := map[string]func(*bench){
		"LockTx waits in line":                       lockTxWaitsInLine,
		"TryLockTx leaves the transaction as it was": tryLockTxLeavesTheTransactionAsItWas,
		"TryLockTx gets what is freed meanwhile":     tryLockTxGetsWhatIsFreedMeanwhile,
		"deadlock is told as such":                   deadlockIsToldAsSuch,
		"higher isolation is refused":                higherIsolationIsRefused,
		"lock timeout of the session":                lockTimeoutOfTheSession,
		"savepoint frees lock":                       savepointFreesLock,
		"context ends wait":                          contextEndsWait,
		"bad keys of transactions":                   badKeysOfTransactions,
	}
	server := pglock.Server()
	pooler := servers.StartPgBouncer(t, server, "transaction")
	for way, url := range map[string]string{
		"direct": server.URL(),
		"pooler": pooler.URL() + "&default_query_exec_mode=exec", // nothing is prepared
	} {
		for client, start := range clients(t, url) {
			for name, test := range tests {
				t.Run(way+"/"+client+"/"+name, func(t *testing.T) { test(&bench{T: t, server: server, start: start}) })
			}
		}
	}
}

func lockTxWaitsInLine(b *bench) {
	first, second, third := b.begin(), b.begin(), b.begin()
	b.must(first.lock(b.Context(), "key"))
	b.must(first.lock(b.Context(), "key")) // again
	b.must(third.lock(b.Context(), "other key"))
	b.must(third.lock(b.Context(), "a\x00b"))

	locked := later(func() error { return second.lock(b.Context(), "key") })
	b.awaitWaiters("1")
	b.held(third.try(b.Context(), "key", 0)) // also behind the queue
	b.must(first.end(b.Context(), true))
	b.must(locked())
	b.must(second.end(b.Context(), false))
	b.must(third.try(b.Context(), "key", 0))
}

func tryLockTxLeavesTheTransactionAsItWas(b *bench) {
	empty := b.begin()
	b.must(empty.exec(b.Context(), `CREATE TABLE IF NOT EXISTS work (note text)`))
	b.must(empty.exec(b.Context(), `TRUNCATE work`))
	b.must(empty.end(b.Context(), true))
	holder, other := b.begin(), b.begin()
	b.must(holder.lock(b.Context(), "key"))

	b.must(other.exec(b.Context(), `INSERT INTO work VALUES ('before')`))
	b.must(other.exec(b.Context(), `SET LOCAL lock_timeout = '1234ms'`))
	const longest = 100 * time.Millisecond
	start := time.Now()
	for _, wait := range []time.Duration{-1, 0, 1, longest} {
		b.held(other.try(b.Context(), "key", wait))
		if got := b.value(other, `SHOW lock_timeout`); got != "1234ms" {
			b.Errorf("after a wait of %v lock_timeout is %s", wait, got)
		}
	}
	if d := time.Since(start); d < longest {
		b.Errorf("to give up took %v, the last time after %v", d, longest)
	}
	b.must(other.lock(b.Context(), "another key"))
	b.must(other.exec(b.Context(), `INSERT INTO work VALUES ('after')`))
	b.must(other.end(b.Context(), true))
	if got := b.value(b.begin(), `SELECT string_agg(note, ' ') FROM work`); got != "before after" {
		b.Errorf("committed: %q", got)
	}
}

func tryLockTxGetsWhatIsFreedMeanwhile(b *bench) {
	holder, other := b.begin(), b.begin()
	b.must(holder.lock(b.Context(), "key"))
	locked := later(func() error { return other.try(b.Context(), "key", time.Hour) })
	b.awaitWaiters("1")
	b.must(holder.end(b.Context(), true))
	b.must(locked())
	if got := b.value(other, `SHOW lock_timeout`); got != "0" {
		b.Errorf("lock_timeout is %s", got)
	}
	b.held(b.begin().try(b.Context(), "key", 0)) // other has it, not only had it
}

func deadlockIsToldAsSuch(b *bench) {
	for name, lock := range map[string]func(s session, key string) error{
		"lock": func(s session, key string) error { return s.lock(b.Context(), key) },
		"try":  func(s session, key string) error { return s.try(b.Context(), key, time.Hour) },
	} {
		one, two := b.begin(), b.begin()
		b.must(one.lock(b.Context(), "a"))
		b.must(two.lock(b.Context(), "b"))
		crossed := later(func() error {
			err := lock(one, "b")
			return errors.Join(err, one.end(b.Context(), err == nil))
		})
		err := lock(two, "a")
		b.must(two.end(b.Context(), err == nil))
		err = errors.Join(err, crossed())
		if !errors.Is(err, holdfast.ErrDeadlock) || errors.Is(err, holdfast.ErrHeld) || strings.Count(err.Error(), "pglock:") != 1 {
			b.Errorf("%s: %v, want ErrDeadlock for one of the two", name, err)
		}
	}
}

// In a transaction that is not read committed, reads date from before the wait. So the
// transaction does not wait, and does not have the lock afterwards.
func higherIsolationIsRefused(b *bench) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for _, level := range []string{"repeatable read", "serializable"} {
		for _, key := range []string{"held", "free"} {
			holder, waiting, trying := b.begin(), b.beginAt(level), b.beginAt(level)
			if key == "held" {
				b.must(holder.lock(ctx, key))
			}
			for _, err := range []error{waiting.lock(ctx, key), trying.try(ctx, key, time.Hour)} {
				if err == nil || !strings.Contains(err.Error(), "is "+level) || !strings.Contains(err.Error(), "read committed") {
					b.Errorf("%s: %v, want it to name both levels", key, err)
				}
			}
			b.must(holder.end(ctx, true))
			next := b.begin()
			b.must(next.try(ctx, key, 0))
			b.must(next.end(ctx, true))
			b.must(waiting.exec(ctx, `SELECT`)) // It can be used further.
		}
	}
}

func lockTimeoutOfTheSession(b *bench) {
	holder, other := b.begin(), b.begin()
	b.must(holder.lock(b.Context(), "key"))
	b.must(other.exec(b.Context(), `SET LOCAL lock_timeout = '1ms'`))
	b.held(other.lock(b.Context(), "key"))
}

func savepointFreesLock(b *bench) {
	one := b.begin()
	b.must(one.exec(b.Context(), `SAVEPOINT mine`))
	b.must(one.lock(b.Context(), "key"))
	b.must(one.exec(b.Context(), `ROLLBACK TO SAVEPOINT mine`))
	b.must(b.begin().try(b.Context(), "key", 0))
}

func contextEndsWait(b *bench) {
	for name, wait := range map[string]func(context.Context, session) error{
		"lock": func(ctx context.Context, s session) error { return s.lock(ctx, "key") },
		"try":  func(ctx context.Context, s session) error { return s.try(ctx, "key", time.Hour) },
	} {
		holder, other := b.begin(), b.begin()
		b.must(holder.lock(b.Context(), "key"))
		ctx, cancel := context.WithCancel(b.Context())
		waited := later(func() error { return wait(ctx, other) })
		b.awaitWaiters("1")
		cancel()
		if err := waited(); !errors.Is(err, context.Canceled) {
			b.Errorf("%s: %v, want canceled", name, err)
		}
		b.must(holder.end(b.Context(), true))
		next := b.begin()
		b.must(next.lock(b.Context(), "key")) // once the one that was cancelled is gone
		b.must(next.end(b.Context(), true))
	}
}

func badKeysOfTransactions(b *bench) {
	s := b.begin()
	for _, key := range []string{"", "\xff", strings.Repeat("k", 513)} {
		for _, err := range []error{s.lock(b.Context(), key), s.try(b.Context(), key, 0)} {
			if err == nil || !strings.Contains(err.Error(), "the key ") {
				b.Errorf("key %.9q: %v, want it to say what is wrong", key, err)
			}
		}
	}
	b.must(s.lock(b.Context(), "good key"))
}
