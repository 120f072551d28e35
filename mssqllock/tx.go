package mssqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	mssql "github.com/microsoft/go-mssqldb"

	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// A Tx is a *sql.Tx, or the transaction of a library like GORM. A *sql.DB is no Tx: the lock
// would have no transaction to end with.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

var _ Tx = (*sql.Tx)(nil)

// lockText acquires an application lock of the transaction, and returns the result of
// sp_getapplock and the session's LOCK_TIMEOUT. A negative wait stands for LOCK_TIMEOUT, and
// for longest if LOCK_TIMEOUT is unlimited. With XACT_ABORT, a refusal would end the transaction in
// Babelfish, where settings of a batch outlive the batch.
const lockText = `DECLARE @got int, @wait int = @p2, @abort int = @@OPTIONS & 16384;
SET XACT_ABORT OFF;
IF @wait < 0 SET @wait = CASE WHEN @@LOCK_TIMEOUT < 0 THEN @p3 WHEN @@LOCK_TIMEOUT = 0 THEN 1 ELSE @@LOCK_TIMEOUT END;
EXEC @got = sp_getapplock @Resource = @p1, @LockMode = N'Exclusive', @LockOwner = N'Transaction', @LockTimeout = @wait;
` + survived + `IF @abort <> 0 SET XACT_ABORT ON;
SELECT @got, @@LOCK_TIMEOUT`

// longest bounds one wait in the server, which may not notice that a client has left. A waiter
// that waits again is last in the queue.
const longest = time.Minute

// LockTx acquires the lock on a key for the rest of the transaction tx. It waits for as
// long as a different transaction holds the lock. The lock ends with the transaction,
// however the transaction ends: there is no TTL, no token and nothing to unlock. The lock
// cannot be lost while the transaction is still writing. A transaction may lock the same
// key again. LockTx needs no table and no rights.
//
// The key has 1 to 512 bytes of UTF-8. The lock is an application lock (sp_getapplock) of
// the database, with a name made from the key. Locks of a Locker on the same key are
// separate. The server grants the lock in FIFO order to transactions that wait for less than a
// minute.
//
// At snapshot isolation, call LockTx before the first SELECT of the transaction. Later
// SELECTs would not see the writes of the last holder.
//
// If transactions deadlock, one of them gets an error that matches holdfast.ErrDeadlock; roll
// back and retry the whole transaction. To avoid deadlocks, lock several keys in sorted
// order. If LOCK_TIMEOUT is set for the session, LockTx waits for no longer. The error then
// matches holdfast.ErrHeld, and the transaction is unchanged and can be used further.
//
// If ctx ends meanwhile, the client interrupts the wait, and the outcome is unknown: roll tx
// back. [TryLockTx] waits for a limited time and leaves the transaction intact.
func LockTx(ctx context.Context, tx Tx, key string) error {
	err := caller.CheckKey(key)
	for err == nil {
		var got, limit int
		if got, limit, err = lock(ctx, tx, key, -1); err != nil || got >= 0 {
			break
		}
		if err = refused(got); limit < 0 && errors.Is(err, caller.ErrHeld) {
			err = ctx.Err()
		}
	}
	return explain(ctx, key, err)
}

// TryLockTx is [LockTx] with a limit. If a different transaction holds the lock for longer
// than wait, TryLockTx gives up with an error that matches holdfast.ErrHeld; after a
// millisecond if wait is 0. The transaction is then unchanged and can be used further. The
// server counts wait in milliseconds, up to 24 days.
//
// Bound TryLockTx by wait, not by ctx. If ctx ends first, the outcome is unknown, as in LockTx.
func TryLockTx(ctx context.Context, tx Tx, key string, wait time.Duration) error {
	err := caller.CheckKey(key)
	if err == nil {
		var got int
		// Babelfish takes no 0.
		if got, _, err = lock(ctx, tx, key, min(max(wait.Milliseconds(), 1), 1<<31-1)); err == nil && got < 0 {
			err = refused(got)
		}
	}
	return explain(ctx, key, err)
}

func lock(ctx context.Context, tx Tx, key string, wait int64) (got, limit int, err error) {
	err = tx.QueryRowContext(ctx, lockText, resource(key), wait, longest.Milliseconds()).Scan(&got, &limit)
	return got, limit, err
}

// resource is the name of the application lock of a key. Names have up to 255 characters.
func resource(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "holdfast tx " + base64.RawURLEncoding.EncodeToString(sum[:])
}

// refused explains a result of sp_getapplock.
func refused(got int) error {
	switch got {
	case -1:
		return caller.ErrHeld
	case -2:
		return errors.New("the wait was cancelled")
	case -3:
		return caller.ErrDeadlock
	}
	return fmt.Errorf("sp_getapplock returned %d: is a transaction open?", got)
}

func explain(ctx context.Context, key string, err error) error {
	if err == nil {
		return nil
	}
	// The client may instead report the connection that it has closed.
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if answer := (mssql.Error{}); errors.As(err, &answer) && answer.Number == 1205 {
		err = fmt.Errorf("%w: %w", caller.ErrDeadlock, err)
	}
	return fmt.Errorf("mssqllock: lock %s: %w", shown.Key(key), err)
}
