// Package guarding shows three ways to guard a change of a balance against concurrent
// changes, with pgx, with database/sql and with GORM: a row lock in a transaction, a lease
// with a fencing token, and a version column. [PGX.Register] and [GORM.Register] guard a
// value without a row. docs/guarding.md compares the ways. The programs in
// examples/withdrawal and examples/registration show the mistakes without a guard, and
// compare the figures.
package guarding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Schema makes the tables of the examples. The tables accept a balance below zero and a
// phone number twice, so only the guards prevent both. In production, let the database
// check as well.
const Schema = `
CREATE TABLE IF NOT EXISTS accounts (
	id      bigint PRIMARY KEY,
	balance bigint NOT NULL,
	version bigint NOT NULL DEFAULT 0, -- for Version
	fence   bigint NOT NULL DEFAULT 0  -- for LeaseColumn
);
CREATE TABLE IF NOT EXISTS registrations (phone text NOT NULL, owner text NOT NULL);
CREATE INDEX IF NOT EXISTS registrations_phone ON registrations (phone)`

// ErrFunds says that the balance is less than the amount.
var ErrFunds = errors.New("insufficient funds")

// ErrOutdated says that the lock had a second holder since the read of the balance.
var ErrOutdated = errors.New("the lock has a new holder")

// A TakenError names the owner of a phone number.
type TakenError struct{ Phone, Owner string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s is registered by %s", e.Phone, e.Owner)
}

// pause waits for a moment that grows with the number of attempts. Without the pause,
// concurrent callers that compare versions would make each other begin again.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-time.After(rand.N(time.Millisecond << min(attempt, 9))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func accountKey(id int64) string { return fmt.Sprintf("account/%d", id) }
