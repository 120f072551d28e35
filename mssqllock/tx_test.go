package mssqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/mssqllock"
)

// A bench begins transactions.
type bench struct {
	*testing.T
	db *sql.DB
}

func TestTransactionLocks(t *testing.T) {
	db := mssqllock.Server(t)
	for name, test := range map[string]func(b *bench){
		"LockTx waits": (*bench).lockTxWaits,
		"TryLockTx leaves the transaction as it was": (*bench).tryLockTxLeavesTheTransactionAsItWas,
		"TryLockTx gets what is freed meanwhile":     (*bench).tryLockTxGetsWhatIsFreedMeanwhile,
		"deadlock is told as such":                   (*bench).deadlockIsToldAsSuch,
		"LOCK_TIMEOUT":                               (*bench).lockTimeout,
		"context has ended":                          (*bench).contextHasEnded,
		"settings of the transaction stay":           (*bench).settingsStay,
		"no transaction":                             (*bench).noTransaction,
		"bad keys":                                   (*bench).badKeys,
	} {
		t.Run(name, func(t *testing.T) { test(&bench{t, db}) })
	}
}

func (b *bench) lockTxWaits() {
	first, second, third := b.begin(), b.begin(), b.begin()
	b.must(b.lock(first, "key"))
	b.must(b.lock(first, "key")) // again
	for _, other := range []string{"Key", "key ", "other key", "a\x00b"} {
		b.must(b.lock(third, other))
	}
	locked := later(func() error { return b.lock(second, "key") })
	b.held(b.try(third, "key", 0))
	b.must(first.Commit())
	b.must(locked())
	b.held(b.try(third, "key", 0))
	b.must(second.Rollback())
	b.must(b.try(third, "key", 0))
}

// Refused locks on one connection are more than Babelfish survives without the remedy.
func (b *bench) tryLockTxLeavesTheTransactionAsItWas() {
	b.do(`CREATE TABLE work (note varchar(10))`)
	holder, other := b.begin(), b.begin()
	b.must(b.lock(holder, "key"))
	for _, note := range []string{"before", "after"} {
		_, err := other.ExecContext(b.Context(), `INSERT INTO work VALUES (@p1)`, note)
		b.must(err)
		for _, wait := range []time.Duration{-1, 0, 1, 10 * time.Millisecond} {
			b.held(b.try(other, "key", wait))
		}
	}
	b.must(b.lock(other, "another key"))
	b.must(other.Commit())
	var notes int
	b.must(b.db.QueryRowContext(b.Context(), `SELECT count(*) FROM work`).Scan(&notes))
	if notes != 2 {
		b.Errorf("%d rows are committed, want 2", notes)
	}
}

func (b *bench) tryLockTxGetsWhatIsFreedMeanwhile() {
	holder, other := b.begin(), b.begin()
	b.must(b.lock(holder, "key"))
	locked := later(func() error { return b.try(other, "key", time.Hour) })
	b.must(holder.Commit())
	b.must(locked())
	b.held(b.try(b.begin(), "key", 0))
}

func (b *bench) deadlockIsToldAsSuch() {
	one, two := b.begin(), b.begin()
	b.must(b.lock(one, "a"))
	b.must(b.lock(two, "b"))
	crossed := later(func() error {
		err := b.lock(one, "b")
		return errors.Join(err, one.Rollback())
	})
	err := b.lock(two, "a")
	b.must(two.Rollback())
	err = errors.Join(err, crossed())
	if !errors.Is(err, holdfast.ErrDeadlock) || errors.Is(err, holdfast.ErrHeld) || strings.Count(err.Error(), "mssqllock:") != 1 {
		b.Errorf("%v, want ErrDeadlock for one of the two", err)
	}
}

// lockTimeout is the classic way of SQL Server: a try that is refused after LOCK_TIMEOUT.
func (b *bench) lockTimeout() {
	holder, other := b.begin(), b.begin()
	b.must(b.lock(holder, "key"))
	_, err := other.ExecContext(b.Context(), `SET LOCK_TIMEOUT 10`)
	b.must(err)
	b.held(b.lock(other, "key"))
	b.must(b.lock(other, "another key"))
	_, err = other.ExecContext(b.Context(), `SET LOCK_TIMEOUT -1`)
	b.must(err)
}

func (b *bench) contextHasEnded() {
	ctx, cancel := context.WithCancel(b.Context())
	tx := b.begin()
	cancel()
	for _, err := range []error{mssqllock.LockTx(ctx, tx, "key"), mssqllock.TryLockTx(ctx, tx, "key", time.Hour)} {
		if !errors.Is(err, context.Canceled) {
			b.Errorf("%v, want the end of the context", err)
		}
	}
}

// noTransaction is about a database that stands for a transaction.
func (b *bench) noTransaction() {
	for _, err := range []error{mssqllock.LockTx(b.Context(), none{b.db}, "key"), mssqllock.TryLockTx(b.Context(), none{b.db}, "key", 0)} {
		if err == nil || errors.Is(err, holdfast.ErrHeld) || !strings.Contains(err.Error(), "is a transaction open?") {
			b.Errorf("%v, want it to say what is missing", err)
		}
	}
}

// settingsStay: what is done in a transaction of the caller changes none of its settings.
func (b *bench) settingsStay() {
	tokens := fence.SQL{Dialect: dialect.SQLServer}
	b.must(tokens.Create(b.Context(), b.db))
	holder := b.begin()
	b.must(b.lock(holder, "held"))
	for _, setting := range []string{"SET XACT_ABORT ON; SET NOCOUNT ON", "SET XACT_ABORT OFF; SET NOCOUNT OFF"} {
		tx := b.begin()
		_, err := tx.ExecContext(b.Context(), setting)
		b.must(err)
		options := func() (set int) {
			b.must(tx.QueryRowContext(b.Context(), "SELECT @@OPTIONS").Scan(&set))
			return set
		}
		before := options()
		for what, err := range map[string]error{
			"LockTx":    b.lock(tx, "free"),
			"TryLockTx": b.try(tx, "held", 0),
			"Check":     tokens.Check(b.Context(), tx, setting, 1),
		} {
			if err != nil && !errors.Is(err, holdfast.ErrHeld) {
				b.Errorf("%s after %s: %v", what, setting, err)
			}
			if after := options(); after != before {
				b.Errorf("%s changes the options after %s from %d to %d", what, setting, before, after)
			}
		}
		b.must(tx.Rollback())
	}
}

// A none is a Tx without a transaction.
type none struct{ *sql.DB }

func (none) Commit() error   { return nil }
func (none) Rollback() error { return nil }

func (b *bench) badKeys() {
	tx := b.begin()
	for _, key := range []string{"", "\xff", strings.Repeat("k", 513)} {
		for _, err := range []error{b.lock(tx, key), b.try(tx, key, 0)} {
			if err == nil || !strings.Contains(err.Error(), "the key ") {
				b.Errorf("key %.9q: %v, want it to say what is wrong", key, err)
			}
		}
	}
}

// begin begins a transaction with a context that does not end. If the context ends before the
// transaction, go-mssqldb 1.11.2 has a data race with the next user of the connection, and, through
// its pool of buffers, with other connections (its issue 390).
func (b *bench) begin() *sql.Tx {
	b.Helper()
	tx, err := b.db.BeginTx(context.WithoutCancel(b.Context()), nil)
	b.must(err)
	b.Cleanup(func() { tx.Rollback() })
	return tx
}

func (b *bench) lock(tx *sql.Tx, key string) error { return mssqllock.LockTx(b.Context(), tx, key) }

func (b *bench) try(tx *sql.Tx, key string, wait time.Duration) error {
	return mssqllock.TryLockTx(b.Context(), tx, key, wait)
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) held(err error) {
	b.Helper()
	if !errors.Is(err, holdfast.ErrHeld) {
		b.Fatalf("%v, want ErrHeld", err)
	}
}

func (b *bench) do(statement string) {
	b.Helper()
	_, err := b.db.ExecContext(b.Context(), statement)
	b.must(err)
}

// later runs f at the same time and returns its result when that is asked for.
func later(f func() error) (result func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}
