package pglock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// LockTx acquires the lock on a key for the rest of the transaction tx, and waits while
// another transaction holds the lock. Waiters are served in FIFO order. The lock ends
// with the transaction, however the transaction ends: there is no TTL, no token and
// nothing to unlock. The lock cannot be lost before the guarded writes are done. Rolling
// back to a savepoint set before LockTx releases the lock, too. A transaction may lock
// the same key again.
//
// The key has 1 to 512 bytes of UTF-8. The lock's number is the first 64 bits of a
// SHA-256. Two keys with the same number exclude each other, too; the probability of such
// a pair among 100 million keys is 0.03 per cent. Locks of a Locker on the same key are
// separate.
//
// The transaction must be read committed. At a higher level the transaction would see the
// database as of before the wait, not the last holder's writes. So LockTx refuses at
// once, and leaves the transaction as before.
//
// If transactions wait for each other in a circle, the server ends the wait of one after
// deadlock_timeout, usually a second, with an error that matches holdfast.ErrDeadlock.
// That transaction can only be rolled back, and retried as a whole. To avoid deadlocks,
// lock several keys in sorted order. If the session's lock_timeout runs out, the error
// matches holdfast.ErrHeld, and the transaction can only be rolled back as well.
//
// If ctx ends meanwhile, pgx closes the connection, and the transaction is over.
// [TryLockTx] waits for a while and leaves the transaction as before.
//
// A pooler in transaction mode, such as PgBouncer, may stand between: the lock is the
// transaction's, not the session's. LockTx refuses CockroachDB, whose advisory locks lock
// nothing.
func LockTx(ctx context.Context, tx pgx.Tx, key string) error {
	return lock(ctx, pgxTx{tx}, key)
}

// TryLockTx is [LockTx] with a limit for the wait. If another transaction holds the lock
// for longer than wait, TryLockTx gives up, with an error that matches holdfast.ErrHeld.
// The transaction is then as before and remains usable. If wait is 0, TryLockTx gives up
// at once. A wait is counted in milliseconds, from 1 on. Bound TryLockTx by wait, not by
// ctx: if ctx ends first, the connection is closed, and the transaction is over, as in
// LockTx.
func TryLockTx(ctx context.Context, tx pgx.Tx, key string, wait time.Duration) error {
	return tryLock(ctx, pgxTx{tx}, key, wait)
}

// A SQLTx is a *sql.Tx, or the equivalent of a library like GORM. A *sql.DB is not a
// SQLTx: the lock would end with the statement that acquires it.
type SQLTx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

var _ SQLTx = (*sql.Tx)(nil)

// LockSQLTx is [LockTx] for database/sql with pgx or lib/pq.
func LockSQLTx(ctx context.Context, tx SQLTx, key string) error {
	return lock(ctx, sqlTx{tx}, key)
}

// TryLockSQLTx is [TryLockTx] for database/sql with pgx or lib/pq.
func TryLockSQLTx(ctx context.Context, tx SQLTx, key string, wait time.Duration) error {
	return tryLock(ctx, sqlTx{tx}, key, wait)
}

// A transaction is the common part of the two clients.
type transaction interface {
	exec(ctx context.Context, query string) error
	row(ctx context.Context, query string, args ...any) interface{ Scan(...any) error }
}

type (
	pgxTx struct{ pgx.Tx }
	sqlTx struct{ SQLTx }
)

func (tx pgxTx) exec(ctx context.Context, query string) error {
	_, err := tx.Exec(ctx, query)
	return err
}

func (tx pgxTx) row(ctx context.Context, query string, args ...any) interface{ Scan(...any) error } {
	return tx.QueryRow(ctx, query, args...)
}

func (tx sqlTx) exec(ctx context.Context, query string) error {
	_, err := tx.ExecContext(ctx, query)
	return err
}

func (tx sqlTx) row(ctx context.Context, query string, args ...any) interface{ Scan(...any) error } {
	return tx.QueryRowContext(ctx, query, args...)
}

func lock(ctx context.Context, tx transaction, key string) error {
	err := caller.CheckKey(key)
	if err == nil {
		err = wait(ctx, tx, lockID(key))
	}
	return explain(key, err)
}

func tryLock(ctx context.Context, tx transaction, key string, patience time.Duration) error {
	err := caller.CheckKey(key)
	if err == nil {
		err = try(ctx, tx, lockID(key), patience)
	}
	return explain(key, err)
}

// level is the isolation level of a transaction, or the name of a server whose advisory
// locks lock nothing.
const level = `CASE WHEN version() LIKE '` + cockroach + `%' THEN '` + cockroach + `' ELSE current_setting('transaction_isolation') END`

const cockroach = "CockroachDB"

// allowed is true at the isolation levels at which a transaction sees the last holder's
// writes. An arm of a CASE is evaluated when chosen, so a transaction of a higher level
// neither waits nor acquires the lock.
const allowed = level + ` IN ('read committed', 'read uncommitted')`

func wait(ctx context.Context, tx transaction, id int64) error {
	var ok *bool
	var isolation string
	err := tx.row(ctx, `SELECT CASE WHEN `+allowed+` THEN pg_advisory_xact_lock($1::bigint) IS NOT NULL END,
`+level, id).Scan(&ok, &isolation)
	if err == nil && ok == nil {
		err = refused(isolation)
	}
	return err
}

// try first tries once, which costs one round trip and cannot fail the transaction. If
// the lock is held, try queues: a polling caller would lose to the waiters in the queue
// for as long as there is a queue.
func try(ctx context.Context, tx transaction, id int64, patience time.Duration) error {
	var ok *bool
	var isolation, timeout string
	err := tx.row(ctx, `SELECT CASE WHEN `+allowed+` THEN pg_try_advisory_xact_lock($1::bigint) END,
`+level+`, current_setting('lock_timeout')`, id).Scan(&ok, &isolation, &timeout)
	switch {
	case err != nil:
		return err
	case ok == nil:
		return refused(isolation)
	case *ok:
		return nil
	case patience <= 0:
		return caller.ErrHeld
	}
	return waitBriefly(ctx, tx, id, patience, timeout)
}

// waitBriefly queues with a lock_timeout. When the timeout runs out, the server fails the
// transaction, but only back to the savepoint. The rollback restores the old timeout,
// too. After a success, waitBriefly restores the old timeout.
func waitBriefly(ctx context.Context, tx transaction, id int64, patience time.Duration, before string) error {
	ms := min(max(1, patience.Milliseconds()), math.MaxInt32)
	if err := tx.exec(ctx, fmt.Sprintf(`SAVEPOINT holdfast; SET LOCAL lock_timeout = %d`, ms)); err != nil {
		return err
	}
	if err := wait(ctx, tx, id); err != nil {
		return errors.Join(err, tx.exec(ctx, `ROLLBACK TO SAVEPOINT holdfast; RELEASE SAVEPOINT holdfast`))
	}
	err := tx.row(ctx, `SELECT set_config('lock_timeout', $1::text, true)`, before).Scan(&before)
	if err != nil {
		return err
	}
	return tx.exec(ctx, `RELEASE SAVEPOINT holdfast`)
}

func refused(level string) error {
	if level == cockroach {
		return errors.New("the server is CockroachDB, whose advisory locks lock nothing: LockTx needs PostgreSQL")
	}
	return fmt.Errorf("the transaction is %s, so it does not see what the last holder has written; it must be read committed", level)
}

// lockID returns the number of a key's lock, which is the same in every release. The prefix
// separates the number from other users of advisory locks that hash the same names.
func lockID(key string) int64 {
	sum := sha256.Sum256([]byte("holdfast transaction\x00" + key))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

func explain(key string, err error) error {
	if err == nil {
		return nil
	}
	var coded interface{ SQLState() string } // of pgx and of lib/pq
	if errors.As(err, &coded) {
		switch coded.SQLState() {
		case "55P03": // lock_not_available
			err = fmt.Errorf("%w: %w", caller.ErrHeld, err)
		case "40P01": // deadlock_detected
			err = fmt.Errorf("%w: %w", caller.ErrDeadlock, err)
		}
	}
	return fmt.Errorf("pglock: lock %s: %w", shown.Key(key), err)
}
