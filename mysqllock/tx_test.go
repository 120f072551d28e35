package mysqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/mysqllock"
)

// A bench begins transactions.
type bench struct {
	*testing.T
	db *sql.DB
}

func TestTransactionLocks(t *testing.T) {
	server := mysqllock.Server().Database(t)
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Passwd, _ = u.User.Password()
	db, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	b := &bench{t, db}
	b.tableIsMissing()
	b.tableIsMade()
	for name, test := range map[string]func(b *bench){
		"LockTx waits":                               (*bench).lockTxWaits,
		"LockTx comes before the snapshot":           (*bench).lockTxComesBeforeTheSnapshot,
		"TryLockTx leaves the transaction as it was": (*bench).tryLockTxLeavesTheTransactionAsItWas,
		"TryLockTx gets what is freed meanwhile":     (*bench).tryLockTxGetsWhatIsFreedMeanwhile,
		"deadlock is told as such":                   (*bench).deadlockIsToldAsSuch,
		"lock wait timeout":                          (*bench).lockWaitTimeout,
		"context ends wait":                          (*bench).contextEndsWait,
		"row is missing":                             (*bench).rowIsMissing,
		"bad keys":                                   (*bench).badKeys,
	} {
		t.Run(name, func(t *testing.T) { test(&bench{t, db}) })
	}
}

func (b *bench) tableIsMissing() {
	if err := mysqllock.LockTx(b.Context(), b.begin(), "key"); err == nil || !strings.Contains(err.Error(), "CreateTxLocks") {
		b.Errorf("%v, want it to say what to do", err)
	}
}

func (b *bench) tableIsMade() {
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := mysqllock.CreateTxLocks(b.Context(), b.db); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	var rows, low, high int
	b.must(b.db.QueryRowContext(b.Context(), `SELECT count(*), min(id), max(id) FROM holdfast_tx_locks`).Scan(&rows, &low, &high))
	if rows != 1<<16 || low != 0 || high != 1<<16-1 {
		b.Errorf("%d rows from %d to %d", rows, low, high)
	}
}

func (b *bench) lockTxWaits() {
	first, second, third := b.begin(), b.begin(), b.begin()
	b.must(b.lock(first, "key"))
	b.must(b.lock(first, "key")) // again
	b.must(b.lock(third, "other key"))
	b.must(b.lock(third, "a\x00b"))
	locked := later(func() error { return b.lock(second, "key") })
	b.awaitWaiter()
	b.held(b.try(third, "key", 0))
	b.must(first.Commit())
	b.must(locked())
	b.held(b.try(third, "key", 0))
	b.must(second.Rollback())
	b.must(b.try(third, "key", 0))
}

func (b *bench) lockTxComesBeforeTheSnapshot() {
	b.do(`CREATE TABLE balances (balance int)`)
	b.do(`INSERT INTO balances VALUES (100)`)
	first, second := b.begin(), b.begin()
	b.must(b.lock(first, "key"))
	locked := later(func() error { return b.lock(second, "key") })
	b.awaitWaiter()
	_, err := first.ExecContext(b.Context(), `UPDATE balances SET balance = 50`)
	b.must(err)
	b.must(first.Commit())
	b.must(locked())
	var balance int
	b.must(second.QueryRowContext(b.Context(), `SELECT balance FROM balances`).Scan(&balance))
	if balance != 50 {
		b.Errorf("the next holder sees %d, want 50", balance)
	}
}

func (b *bench) tryLockTxLeavesTheTransactionAsItWas() {
	b.do(`CREATE TABLE work (note varchar(10))`)
	holder, other := b.begin(), b.begin()
	b.must(b.lock(holder, "key"))
	for _, note := range []string{"before", "after"} {
		_, err := other.ExecContext(b.Context(), `INSERT INTO work VALUES (?)`, note)
		b.must(err)
		for _, wait := range []time.Duration{-1, 0, 1, 10 * time.Millisecond} {
			b.held(b.try(other, "key", wait))
		}
	}
	b.must(b.lock(other, "another key"))
	b.must(other.Commit())
	var notes string
	b.must(b.db.QueryRowContext(b.Context(), `SELECT group_concat(note) FROM work`).Scan(&notes))
	if notes != "before,after" {
		b.Errorf("committed: %s", notes)
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
	if !errors.Is(err, holdfast.ErrDeadlock) || errors.Is(err, holdfast.ErrHeld) || strings.Count(err.Error(), "mysqllock:") != 1 {
		b.Errorf("%v, want ErrDeadlock for one of the two", err)
	}
}

func (b *bench) lockWaitTimeout() {
	holder, other := b.begin(), b.begin()
	b.must(b.lock(holder, "key"))
	_, err := other.ExecContext(b.Context(), `SET SESSION innodb_lock_wait_timeout = 1`)
	b.must(err)
	b.held(b.lock(other, "key"))
	_, err = other.ExecContext(b.Context(), `SET SESSION innodb_lock_wait_timeout = DEFAULT`)
	b.must(err)
}

func (b *bench) contextEndsWait() {
	holder := b.begin()
	b.must(b.lock(holder, "key"))
	for name, wait := range map[string]func(context.Context, *sql.Tx) error{
		"lock": func(ctx context.Context, tx *sql.Tx) error { return mysqllock.LockTx(ctx, tx, "key") },
		"try":  func(ctx context.Context, tx *sql.Tx) error { return mysqllock.TryLockTx(ctx, tx, "key", time.Hour) },
	} {
		ctx, cancel := context.WithTimeout(b.Context(), 20*time.Millisecond)
		if err := wait(ctx, b.begin()); !errors.Is(err, context.DeadlineExceeded) {
			b.Errorf("%s: %v, want deadline exceeded", name, err)
		}
		cancel()
	}
}

func (b *bench) rowIsMissing() {
	b.do(`DELETE FROM holdfast_tx_locks`)
	tx := b.begin()
	if err := b.lock(tx, "key"); err == nil || !strings.Contains(err.Error(), "CreateTxLocks") {
		b.Errorf("%v, want it to say what to do", err)
	}
	b.held(b.try(tx, "key", 0))
	b.must(tx.Rollback())
	b.must(mysqllock.CreateTxLocks(b.Context(), b.db))
}

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

func (b *bench) begin() *sql.Tx {
	b.Helper()
	tx, err := b.db.BeginTx(b.Context(), nil)
	b.must(err)
	b.Cleanup(func() { tx.Rollback() })
	return tx
}

func (b *bench) lock(tx *sql.Tx, key string) error { return mysqllock.LockTx(b.Context(), tx, key) }

func (b *bench) try(tx *sql.Tx, key string, wait time.Duration) error {
	return mysqllock.TryLockTx(b.Context(), tx, key, wait)
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

// awaitWaiter returns when a transaction waits for a lock. The table innodb_trx
// would not do: it stays as it is for those who look at it all the time.
func (b *bench) awaitWaiter() {
	b.Helper()
	servers.Until(b, "a waiter", func() bool {
		var waiting int
		b.must(b.db.QueryRowContext(b.Context(), `SELECT variable_value FROM information_schema.global_status
WHERE variable_name = 'INNODB_ROW_LOCK_CURRENT_WAITS'`).Scan(&waiting))
		return waiting > 0
	})
}
