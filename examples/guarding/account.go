// Package guarding shows three ways to guard a change of a balance against
// others at the same time, each with pgx, with database/sql and with GORM: a row
// lock in a transaction, a lease with a fencing token, and a version that is
// compared. [PGX.Register] and [GORM.Register] guard what has no row yet.
// docs/guarding.md compares them. The programs in examples/withdrawal and
// examples/registration show what happens without them, and compare their figures.
package guarding

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Schema makes the tables of the examples. Nothing in them keeps a balance from
// falling below zero, or a phone number from being registered twice, so that only
// the guards do; in earnest, let the database check that as well.
const Schema = `
CREATE TABLE IF NOT EXISTS accounts (
	id      bigint PRIMARY KEY,
	balance bigint NOT NULL,
	version bigint NOT NULL DEFAULT 0, -- for Version
	fence   bigint NOT NULL DEFAULT 0  -- for LeaseColumn
);
CREATE TABLE IF NOT EXISTS registrations (phone text NOT NULL, owner text NOT NULL);
CREATE INDEX IF NOT EXISTS registrations_phone ON registrations (phone)`

// ErrFunds says that the balance is less than what is to be withdrawn.
var ErrFunds = errors.New("insufficient funds")

// ErrOutdated says that another has held the lock since the balance was read.
var ErrOutdated = errors.New("the lock has gone to another")

// A TakenError says whose a phone number is already.
type TakenError struct{ Phone, Owner string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s is registered by %s", e.Phone, e.Owner)
}

// pause waits for a moment that grows with the number of attempts, since others
// who compare versions would else only make each other begin again.
func pause(ctx context.Context, attempt int) error {
	select {
	case <-time.After(rand.N(time.Millisecond << min(attempt, 9))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func accountKey(id int64) string { return fmt.Sprintf("account/%d", id) }
