package mysqllock

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// InnoDB has no named locks that end with a transaction, but row locks do. A row per key
// would have to be inserted during the lock. Transactions that wait for the gap of the new
// row are known to deadlock. The table would grow without end. Each new key would go to the
// binary log. Therefore the rows exist from the beginning, are never written, and are
// shared by keys.

// CreateTxLocks creates the table holdfast_tx_locks for [LockTx] in the database of the
// connection, unless the table exists: 65,536 numbers, some megabytes. CreateTxLocks needs
// the privileges CREATE and INSERT on the table. Locking needs SELECT and UPDATE, although
// the rows are never changed.
func CreateTxLocks(ctx context.Context, db *sql.DB) error {
	for _, statement := range []string{createTable, insertRows()} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("mysqllock: create the table of transaction locks: %w", err)
		}
	}
	return nil
}

const createTable = `CREATE TABLE IF NOT EXISTS holdfast_tx_locks (id smallint unsigned NOT NULL PRIMARY KEY) ENGINE = InnoDB`

// insertRows lists the 16-bit numbers as numbers of four hexadecimal digits.
func insertRows() string {
	digit := `(SELECT 0 AS n`
	for n := 1; n < 16; n++ {
		digit += ` UNION ALL SELECT ` + strconv.Itoa(n)
	}
	digit += `)`
	return `INSERT IGNORE INTO holdfast_tx_locks (id) SELECT a.n + 16 * b.n + 256 * c.n + 4096 * d.n
FROM ` + digit + ` a, ` + digit + ` b, ` + digit + ` c, ` + digit + ` d`
}

// A Tx is a *sql.Tx, or the transaction of a library like GORM. A *sql.DB is no Tx: the
// lock would end with the statement that acquires it.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

var _ Tx = (*sql.Tx)(nil)

// LockTx acquires the lock on a key for the rest of the transaction tx. It waits for as
// long as a different transaction holds the lock. The lock ends with the transaction,
// however the transaction ends: there is no TTL, no token and nothing to unlock. The lock
// cannot be lost while the transaction is still writing. A transaction may lock the same
// key again.
//
// The key has 1 to 512 bytes of UTF-8. A key is a row of the table created by
// [CreateTxLocks]. Two different keys share a row with a probability of one in 65,536.
// Transactions that lock keys with the same row also exclude each other. Locks of a Locker
// on the same key are separate.
//
// Call LockTx before the first SELECT of the transaction. At the usual level, REPEATABLE
// READ, the first SELECT fixes the snapshot for later SELECTs, which would not see the
// writes of the last holder. LockTx itself fixes no snapshot. Otherwise read with FOR
// UPDATE, or at READ COMMITTED.
//
// If transactions deadlock, the server rolls one of them back at once, with an error that
// matches holdfast.ErrDeadlock; retry the whole transaction. To avoid deadlocks, lock
// several keys in sorted order. After innodb_lock_wait_timeout, 50 seconds by default, the
// error matches holdfast.ErrHeld; the transaction goes on unless innodb_rollback_on_timeout
// is set.
//
// If ctx ends meanwhile, the client closes the connection, and the transaction is over;
// [TryLockTx] waits for a limited time and leaves the transaction intact.
//
// Servers that take writes side by side, as in Galera or a group with several primaries, do
// not see each other's locks. Use one of the servers.
func LockTx(ctx context.Context, tx Tx, key string) error {
	err := caller.CheckKey(key)
	if err == nil {
		err = lockRow(ctx, tx, key, `SELECT id FROM holdfast_tx_locks WHERE id = ? FOR UPDATE`)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New("a row of holdfast_tx_locks is missing: call CreateTxLocks")
	}
	return explain(ctx, key, err)
}

// TryLockTx is [LockTx] with a limit. If a different transaction holds the lock for longer
// than wait, TryLockTx gives up with an error that matches holdfast.ErrHeld; at once if
// wait is 0. The transaction is then unchanged and can be used further.
//
// Bound TryLockTx by wait, not by ctx. If ctx ends first, the error matches
// holdfast.ErrHeld only if the lock was refused before. If a statement was under way, the
// client closes the connection, and the transaction is over, as in LockTx.
//
// TryLockTx retries with pauses of up to 20 ms. The engines wait for whole seconds only,
// and some roll back a transaction that has waited in vain. A waiter in LockTx therefore
// comes first. A row deleted by hand counts as held. TryLockTx needs MySQL 8 or MariaDB
// 10.6, or later.
func TryLockTx(ctx context.Context, tx Tx, key string, wait time.Duration) error {
	err := caller.CheckKey(key)
	if err == nil {
		err = poll(ctx, tx, key, wait)
	}
	return explain(ctx, key, err)
}

func poll(ctx context.Context, tx Tx, key string, wait time.Duration) error {
	until := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := lockRow(ctx, tx, key, `SELECT id FROM holdfast_tx_locks WHERE id = ? FOR UPDATE SKIP LOCKED`)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		left := time.Until(until)
		if left <= 0 {
			return caller.ErrHeld
		}
		select {
		case <-time.After(min(left, pause/2+rand.N(pause))): // not all at once
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", caller.ErrHeld, ctx.Err())
		}
	}
}

func lockRow(ctx context.Context, tx Tx, key, query string) error {
	sum := sha256.Sum256([]byte(key))
	var id uint16
	return tx.QueryRowContext(ctx, query, binary.BigEndian.Uint16(sum[:])).Scan(&id)
}

func explain(ctx context.Context, key string, err error) error {
	if err == nil {
		return nil
	}
	// The client may instead report the connection that it has closed.
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		switch answer.Number {
		case lockWait:
			err = fmt.Errorf("%w: %w", caller.ErrHeld, err)
		case deadlock:
			err = fmt.Errorf("%w: %w", caller.ErrDeadlock, err)
		case 1146: // no such table
			err = fmt.Errorf("call CreateTxLocks: %w", err)
		}
	}
	return fmt.Errorf("mysqllock: lock %s: %w", shown.Key(key), err)
}
