package guarding

import (
	"context"
	"database/sql"
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
)

// SQL withdraws by database/sql.
type SQL struct {
	DB     *sql.DB
	Locks  *holdfast.Locker
	Fences fence.SQL
}

// RowLock locks the row of the account for the length of a transaction.
func (s SQL) RowLock(ctx context.Context, id, amount int64) error {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var balance int64
	err = tx.QueryRowContext(ctx, `SELECT balance FROM accounts WHERE id = $1 FOR UPDATE`, id).Scan(&balance)
	if err != nil {
		return err
	}
	if balance < amount {
		return ErrFunds
	}
	if _, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-amount, id); err != nil {
		return err
	}
	return tx.Commit()
}

// Fenced locks the account in any store. The database refuses the write if the lock
// was lost.
func (s SQL) Fenced(ctx context.Context, id, amount int64) error {
	return s.Locks.Do(ctx, accountKey(id), func(ctx context.Context) error {
		return s.Fences.Do(ctx, s.DB, func(tx *sql.Tx) error {
			var balance int64
			err := tx.QueryRowContext(ctx, `SELECT balance FROM accounts WHERE id = $1`, id).Scan(&balance)
			if err != nil {
				return err
			}
			if balance < amount {
				return ErrFunds
			}
			_, err = tx.ExecContext(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-amount, id)
			return err
		})
	})
}

// Lease is Fenced with slow work between the read and the write, while no transaction
// is open. The read is fenced against earlier holders, the write against later ones.
func (s SQL) Lease(ctx context.Context, id, amount int64) error {
	return s.Locks.Do(ctx, accountKey(id), func(ctx context.Context) error {
		var balance int64
		err := s.Fences.Do(ctx, s.DB, func(tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, `SELECT balance FROM accounts WHERE id = $1`, id).Scan(&balance)
		})
		if err != nil {
			return err
		}
		if balance < amount {
			return ErrFunds
		}
		// Here may be slow work: no transaction is open meanwhile.
		return s.Fences.Do(ctx, s.DB, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-amount, id)
			return err
		})
	})
}

// LeaseColumn is Lease where all that is guarded is one row: the token is kept
// in it, and there is no transaction.
func (s SQL) LeaseColumn(ctx context.Context, id, amount int64) error {
	return s.Locks.Do(ctx, accountKey(id), func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		token := int64(lock.Fence())
		if token == 0 {
			return ErrOutdated // any row would take it
		}
		var balance int64
		err := s.DB.QueryRowContext(ctx, `UPDATE accounts SET fence = $1 WHERE id = $2 AND fence <= $1 RETURNING balance`, token, id).Scan(&balance)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrOutdated // or there is no such account
		}
		if err != nil {
			return err
		}
		if balance < amount {
			return ErrFunds
		}
		done, err := s.DB.ExecContext(ctx, `UPDATE accounts SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2`,
			balance-amount, token, id)
		if err != nil {
			return err
		}
		if rows, err := done.RowsAffected(); err != nil || rows == 1 {
			return err
		}
		return ErrOutdated
	})
}

// Version locks nothing, and begins again if another was faster.
func (s SQL) Version(ctx context.Context, id, amount int64) error {
	for attempt := 0; ; attempt++ {
		var balance, version int64
		err := s.DB.QueryRowContext(ctx, `SELECT balance, version FROM accounts WHERE id = $1`, id).Scan(&balance, &version)
		if err != nil {
			return err
		}
		if balance < amount {
			return ErrFunds
		}
		done, err := s.DB.ExecContext(ctx, `UPDATE accounts SET balance = $1, version = version + 1 WHERE id = $2 AND version = $3`,
			balance-amount, id, version)
		if err != nil {
			return err
		}
		if rows, err := done.RowsAffected(); err != nil || rows == 1 {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}
