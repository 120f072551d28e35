// Package onceonly withdraws money from an account in a database, once for each
// order, however often and wherever that is sent.
package onceonly

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/once"
)

// ErrFunds says that the balance is too small. It is no result: the order may be
// sent again when there is more.
var ErrFunds = errors.New("not enough money")

// Accounts are kept in a database, next to the records of what was withdrawn.
type Accounts struct {
	Records *once.SQL
	Effects once.Runner // with Records
}

// Withdraw takes an amount from an account, and returns the new balance. The withdrawal and
// its record commit together.
func (a *Accounts) Withdraw(ctx context.Context, order string, id, amount int64) ([]byte, error) {
	return a.Effects.DoTx(ctx, "order/"+order, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
		return withdraw(ctx, tx, id, amount)
	})
}

// WithdrawTx is Withdraw with a transaction of its own making.
func (a *Accounts) WithdrawTx(ctx context.Context, order string, id, amount int64) ([]byte, error) {
	effect, err := a.Effects.Begin(ctx, "order/"+order, "")
	if err != nil {
		return nil, err
	}
	defer effect.Close()
	if result, done := effect.Result(); done {
		return result, nil
	}
	tx, err := a.Records.DB.BeginTx(effect.Context(ctx), nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	result, err := withdraw(ctx, tx, id, amount)
	if err != nil {
		return nil, err
	}
	if err := a.Records.FinishTx(ctx, tx, effect, result); err != nil {
		return nil, err
	}
	return result, tx.Commit()
}

func withdraw(ctx context.Context, tx *sql.Tx, id, amount int64) ([]byte, error) {
	var balance int64
	err := tx.QueryRowContext(ctx, `UPDATE accounts SET balance = balance - ? WHERE id = ? AND balance >= ? RETURNING balance`, amount, id, amount).Scan(&balance)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrFunds
	}
	return fmt.Append(nil, balance), err
}
