package guarding

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/pglock"
)

// PGX withdraws by pgx.
type PGX struct {
	Pool   *pgxpool.Pool
	Locks  *holdfast.Locker
	Fences fence.SQL
}

// RowLock locks the row of the account for the length of a transaction.
func (p PGX) RowLock(ctx context.Context, id, amount int64) error {
	return pgx.BeginFunc(ctx, p.Pool, func(tx pgx.Tx) error {
		var balance int64
		err := tx.QueryRow(ctx, `SELECT balance FROM accounts WHERE id = $1 FOR UPDATE`, id).Scan(&balance)
		if err != nil {
			return err
		}
		if balance < amount {
			return ErrFunds
		}
		_, err = tx.Exec(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-amount, id)
		return err
	})
}

// Fenced locks the account in any store. The database refuses the write if the lock
// was lost.
func (p PGX) Fenced(ctx context.Context, id, amount int64) error {
	return p.Locks.Do(ctx, accountKey(id), func(ctx context.Context) error {
		return pglock.DoFenced(ctx, p.Pool, p.Fences, func(tx pgx.Tx) error {
			return withdraw(ctx, tx, id, amount)
		})
	})
}

func withdraw(ctx context.Context, tx pgx.Tx, id, amount int64) error {
	var balance int64
	err := tx.QueryRow(ctx, `SELECT balance FROM accounts WHERE id = $1`, id).Scan(&balance)
	if err != nil {
		return err
	}
	if balance < amount {
		return ErrFunds
	}
	_, err = tx.Exec(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-amount, id)
	return err
}

// Lease is Fenced with slow work between the read and the write, while no transaction
// is open. The read is fenced against earlier holders, the write against later ones.
func (p PGX) Lease(ctx context.Context, id, amount int64) error {
	return p.Locks.Do(ctx, accountKey(id), func(ctx context.Context) error {
		var balance int64
		err := pglock.DoFenced(ctx, p.Pool, p.Fences, func(tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT balance FROM accounts WHERE id = $1`, id).Scan(&balance)
		})
		if err != nil {
			return err
		}
		if balance < amount {
			return ErrFunds
		}
		// Here may be slow work: no transaction is open meanwhile.
		return pglock.DoFenced(ctx, p.Pool, p.Fences, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-amount, id)
			return err
		})
	})
}

// Version locks nothing, and begins again if another was faster.
func (p PGX) Version(ctx context.Context, id, amount int64) error {
	for attempt := 0; ; attempt++ {
		var balance, version int64
		err := p.Pool.QueryRow(ctx, `SELECT balance, version FROM accounts WHERE id = $1`, id).Scan(&balance, &version)
		if err != nil {
			return err
		}
		if balance < amount {
			return ErrFunds
		}
		done, err := p.Pool.Exec(ctx, `UPDATE accounts SET balance = $1, version = version + 1 WHERE id = $2 AND version = $3`,
			balance-amount, id, version)
		if err != nil || done.RowsAffected() == 1 {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// Register writes down whose a phone number is, once: another gets a
// [TakenError]. There is no row to lock before, so the number itself is locked.
func (p PGX) Register(ctx context.Context, phone, owner string) error {
	return pgx.BeginFunc(ctx, p.Pool, func(tx pgx.Tx) error {
		if err := pglock.LockTx(ctx, tx, "phone/"+phone); err != nil {
			return err
		}
		var first string
		err := tx.QueryRow(ctx, `SELECT owner FROM registrations WHERE phone = $1`, phone).Scan(&first)
		if err == nil {
			return &TakenError{Phone: phone, Owner: first}
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO registrations (phone, owner) VALUES ($1, $2)`, phone, owner)
		return err
	})
}
