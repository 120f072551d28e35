package guarding

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Unguarded withdraws as one does who thinks of no others: two at the same time both
// find the money, and both pay it out.
func (p PGX) Unguarded(ctx context.Context, id, amount int64) error {
	var balance int64
	err := p.Pool.QueryRow(ctx, `SELECT balance FROM accounts WHERE id = $1`, id).Scan(&balance)
	if err != nil {
		return err
	}
	if balance < amount {
		return ErrFunds
	}
	if err := p.work(ctx); err != nil {
		return err
	}
	_, err = p.Pool.Exec(ctx, `UPDATE accounts SET balance = $1 WHERE id = $2`, balance-amount, id)
	return err
}

// RegisterUnguarded registers as one does who thinks of no others: two at the same
// time both find the phone number free.
func (p PGX) RegisterUnguarded(ctx context.Context, phone, owner string) error {
	var first string
	err := p.Pool.QueryRow(ctx, `SELECT owner FROM registrations WHERE phone = $1`, phone).Scan(&first)
	if err == nil {
		return &TakenError{Phone: phone, Owner: first}
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err := p.work(ctx); err != nil {
		return err
	}
	_, err = p.Pool.Exec(ctx, `INSERT INTO registrations (phone, owner) VALUES ($1, $2)`, phone, owner)
	return err
}
