package main

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/examples/guarding"
	"github.com/holdfast-go/holdfast/examples/internal/scenario"
)

const schema = `CREATE TABLE IF NOT EXISTS accounts (id bigint PRIMARY KEY, balance bigint NOT NULL, version bigint NOT NULL DEFAULT 0)`

// A bank has one account.
type bank struct {
	*scenario.Database
	work    func(context.Context) error // between the read and the write
	mu      sync.Mutex                  // knows nothing of other processes
	retries atomic.Int64
}

type withdraw = func(ctx context.Context, amount int64) error

// guards are ways to withdraw. They return [guarding.ErrFunds] if the balance is less
// than the amount.
func (b *bank) guards() map[string]withdraw {
	return map[string]withdraw{
		"none":    b.none,
		"mutex":   b.mutex,
		"lock":    b.lock,
		"row":     b.row,
		"version": b.version,
		"update":  b.update,
	}
}

// reasons say why other guards do not fit.
var reasons = map[string]string{
	"unique": "two withdrawals change one row, and a unique index refuses a second row only",
	"upsert": "the row of the account is there, so nothing is inserted: want update",
}

func (b *bank) none(ctx context.Context, amount int64) error {
	balance, err := b.enough(ctx, b, amount, "")
	if err != nil {
		return err
	}
	return b.set(ctx, b, balance-amount)
}

func (b *bank) mutex(ctx context.Context, amount int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.none(ctx, amount)
}

// lock takes a lease. The database refuses a write after the lease was lost. No
// transaction is open during the work. If the store is too slow to grant the lease, the
// withdrawal begins again. After the write, a lease that is lost, or cannot be released in
// time, changes nothing: the money is paid.
func (b *bank) lock(ctx context.Context, amount int64) error {
	paid := false
	pay := func(ctx context.Context) (err error) {
		var balance int64
		err = b.Fences.Do(ctx, b.DB, func(tx *sql.Tx) error {
			balance, err = b.read(ctx, tx, amount, "")
			return err
		})
		if err != nil {
			return err
		}
		if err := b.work(ctx); err != nil {
			return err
		}
		err = b.Fences.Do(ctx, b.DB, func(tx *sql.Tx) error { return b.set(ctx, tx, balance-amount) })
		paid = err == nil
		return err
	}
	err := b.Locks.Do(ctx, accountKey, pay)
	for scenario.IsLate(err) {
		b.retries.Add(1)
		err = b.Locks.Do(ctx, accountKey, pay)
	}
	if paid {
		return nil
	}
	return err
}

// row locks the row until the transaction ends.
func (b *bank) row(ctx context.Context, amount int64) error {
	return b.Tx(ctx, func(tx *sql.Tx) error {
		balance, err := b.enough(ctx, tx, amount, " FOR UPDATE")
		if err != nil {
			return err
		}
		return b.set(ctx, tx, balance-amount)
	})
}

// version locks nothing. If the row has changed since the read, the withdrawal begins
// again, after a pause that grows with each attempt.
func (b *bank) version(ctx context.Context, amount int64) error {
	for attempt := 0; ; attempt++ {
		var balance, version int64
		err := b.Row(ctx, b, `SELECT balance, version FROM accounts WHERE id = ?`, account).Scan(&balance, &version)
		if err != nil {
			return err
		}
		if balance < amount {
			return guarding.ErrFunds
		}
		if err := b.work(ctx); err != nil {
			return err
		}
		rows, err := b.Exec(ctx, b, `UPDATE accounts SET balance = ?, version = version + 1 WHERE id = ? AND version = ?`,
			balance-amount, account, version)
		if err != nil || rows == 1 {
			return err
		}
		b.retries.Add(1)
		select {
		case <-time.After(rand.N(time.Millisecond << min(attempt, 9))):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// update checks the balance again in the statement that changes the balance.
func (b *bank) update(ctx context.Context, amount int64) error {
	if _, err := b.enough(ctx, b, amount, ""); err != nil {
		return err
	}
	rows, err := b.Exec(ctx, b, `UPDATE accounts SET balance = balance - ? WHERE id = ? AND balance >= ?`, amount, account, amount)
	if err == nil && rows == 0 {
		return guarding.ErrFunds
	}
	return err
}

// enough reads the balance, and works if the balance is enough.
func (b *bank) enough(ctx context.Context, on scenario.Querier, amount int64, how string) (int64, error) {
	balance, err := b.read(ctx, on, amount, how)
	if err != nil {
		return 0, err
	}
	return balance, b.work(ctx)
}

func (b *bank) read(ctx context.Context, on scenario.Querier, amount int64, how string) (balance int64, err error) {
	err = b.Row(ctx, on, `SELECT balance FROM accounts WHERE id = ?`+how, account).Scan(&balance)
	if err == nil && balance < amount {
		err = guarding.ErrFunds
	}
	return balance, err
}

func (b *bank) set(ctx context.Context, on scenario.Querier, balance int64) error {
	_, err := b.Exec(ctx, on, `UPDATE accounts SET balance = ? WHERE id = ?`, balance, account)
	return err
}
