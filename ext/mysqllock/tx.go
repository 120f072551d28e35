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

	"github.com/holdfast-go/holdfast/driver"
)

// InnoDB has no named locks that end with a transaction, but row locks do. A
// row for each key would have to be made while it is locked; then transactions
// that wait for the gap in which it will be are known to end in deadlocks, the
// table would grow without end, and each new key would be written to the binary
// log. So the rows are there from the beginning, are never written, and keys
// share them.

// CreateTxLocks makes the table holdfast_tx_locks, which [LockTx] needs, in the
// database of the connection, unless it is there: 65,536 numbers, some megabytes.
// Who calls it needs the privileges CREATE and INSERT on the table; who locks
// needs SELECT and UPDATE, although the rows are never changed.
func CreateTxLocks(ctx context.Context, db *sql.DB) error {
	for _, statement := range []string{createTable, insertRows()} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("mysqllock: create the table of transaction locks: %w", err)
		}
	}
	return nil
}

const createTable = `CREATE TABLE IF NOT EXISTS holdfast_tx_locks (id smallint unsigned NOT NULL PRIMARY KEY) ENGINE = InnoDB`

// insertRows lists the numbers of 16 bits as those of four digits.
func insertRows() string {
	digit := `(SELECT 0 AS n`
	for n := 1; n < 16; n++ {
		digit += ` UNION ALL SELECT ` + strconv.Itoa(n)
	}
	digit += `)`
	return `INSERT IGNORE INTO holdfast_tx_locks (id) SELECT a.n + 16 * b.n + 256 * c.n + 4096 * d.n
FROM ` + digit + ` a, ` + digit + ` b, ` + digit + ` c, ` + digit + ` d`
}

// A Tx is a *sql.Tx, or what a library like GORM makes of one. A *sql.DB is none:
// the lock would end with the statement that takes it.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

var _ Tx = (*sql.Tx)(nil)

// LockTx takes the lock on a key for the rest of the transaction tx, and waits
// for as long as another transaction has it. It ends with the transaction,
// however that ends: there is no TTL, no token and nothing to unlock, and the
// lock cannot be lost while what it guards is still written. A transaction may
// take the same key again.
//
// The key has 1 to 512 bytes of UTF-8. It is a row of the table that
// [CreateTxLocks] makes: of two other keys, one in 65,536 has the same row, and
// transactions that lock these exclude each other, too. Locks of a Locker on the
// same key are others.
//
// Call LockTx before the first SELECT of the transaction. At the usual level,
// REPEATABLE READ, that SELECT fixes what the later ones see, and they would not
// see what the last holder has written; LockTx itself fixes nothing. Else read
// with FOR UPDATE, or at READ COMMITTED.
//
// If transactions wait for each other in a circle, the server rolls one of them
// back at once, with an error that matches holdfast.ErrDeadlock; try it again as
// a whole. To avoid it, lock several keys in sorted order. After
// innodb_lock_wait_timeout, 50 seconds by default, the error matches
// holdfast.ErrHeld; the transaction goes on unless innodb_rollback_on_timeout is
// set.
//
// If ctx ends meanwhile, the client closes the connection, and the
// transaction is over; [TryLockTx] waits for a while and leaves it as it was.
//
// Servers that take writes next to each other, as in Galera or a group with
// several primaries, do not see each other's locks: use one of them.
func LockTx(ctx context.Context, tx Tx, key string) error {
	err := driver.CheckKey(key)
	if err == nil {
		err = lockRow(ctx, tx, key, `SELECT id FROM holdfast_tx_locks WHERE id = ? FOR UPDATE`)
	}
	if errors.Is(err, sql.ErrNoRows) {
		err = errors.New("a row of holdfast_tx_locks is missing: call CreateTxLocks")
	}
	return explain(ctx, key, err)
}

// TryLockTx is [LockTx], but gives up when another transaction has the lock for
// longer than wait, at once if that is 0, with an error that matches
// holdfast.ErrHeld. The transaction is then as it was before and can be used
// further. It is the wait that bounds TryLockTx gently, not ctx: if that ends
// first, the error matches holdfast.ErrHeld only if it was refused before, and if
// a statement was under way the client closes the connection, and the transaction
// is over, as in LockTx.
//
// It asks again and again, with pauses of up to 20 ms, because the engines wait
// for whole seconds only, and some roll back a transaction that has waited in
// vain. So whoever waits in LockTx comes first. A row that was deleted by hand
// counts as held. MySQL must be of version 8, MariaDB of 10.6, or later.
func TryLockTx(ctx context.Context, tx Tx, key string, wait time.Duration) error {
	err := driver.CheckKey(key)
	if err == nil {
		err = askAgain(ctx, tx, key, wait)
	}
	return explain(ctx, key, err)
}

func askAgain(ctx context.Context, tx Tx, key string, wait time.Duration) error {
	until := time.Now().Add(wait)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := lockRow(ctx, tx, key, `SELECT id FROM holdfast_tx_locks WHERE id = ? FOR UPDATE SKIP LOCKED`)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		left := time.Until(until)
		if left <= 0 {
			return driver.ErrHeld
		}
		select {
		case <-time.After(min(left, pause/2+rand.N(pause))): // not all at once
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", driver.ErrHeld, ctx.Err())
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
	// The client may tell of the connection that it has closed instead.
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	var answer *mysql.MySQLError
	if errors.As(err, &answer) {
		switch answer.Number {
		case 1205: // lock wait timeout exceeded
			err = fmt.Errorf("%w: %w", driver.ErrHeld, err)
		case 1213: // deadlock found
			err = fmt.Errorf("%w: %w", driver.ErrDeadlock, err)
		case 1146: // no such table
			err = fmt.Errorf("call CreateTxLocks: %w", err)
		}
	}
	return fmt.Errorf("mysqllock: lock %q: %w", key, err)
}
