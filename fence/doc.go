// Package fence is the checking side of fencing tokens: what a lock guards
// refuses the writes of those who have lost it.
//
// A holder that is paused, or cut off, past the end of its lease does not know
// that another holds the lock now, and goes on to write. But its token is smaller
// than that of the other. So whoever stores what the lock guards keeps the highest
// token that it has seen, and refuses smaller ones. [SQL] does so in a table next
// to the data:
//
//	var fences = fence.SQL{Dialect: fence.Postgres}
//
//	token := lock.Fence()
//	err = fences.Check(ctx, db, lock.Key(), token)
//	// Read, and do what takes its time.
//	tx, err := db.BeginTx(ctx, nil)
//	err = fences.Check(ctx, tx, lock.Key(), token)
//	if errors.Is(err, fence.ErrOutdated) {
//		// Another has had the lock since: roll back.
//	}
//	_, err = tx.ExecContext(ctx, `UPDATE account SET ...`)
//	err = tx.Commit()
//
// The second check is one with the write: it refuses it once another has had the
// lock. The first one is for what the write depends on: from then on nobody with
// a smaller token can write, so what is read after it stays true until a larger
// one comes. Without it, one who was paused could still write after the read and
// before the write of the next holder, who would overwrite it. Where the
// transaction reads what it needs after its own check, that one is enough.
//
// Where a lock guards one row, a column of that row does without the table:
//
//	UPDATE account SET fence = $1 WHERE id = $2 AND fence <= $1 RETURNING balance
//	UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// What is guarded by a single process may keep its tokens there ([Memory]), and
// package httplock checks those that come with requests.
//
// A token that is equal passes, so that one holder may write many times.
// Exclusive locks and writers fit; all readers of one phase share a token, and
// holders of slots have tokens that say nothing about each other.
package fence

import (
	"errors"
	"fmt"
)

// ErrOutdated says that a larger token has been seen, so that whoever has this
// one no longer holds the lock. [OutdatedError] has the facts.
var ErrOutdated = errors.New("token is outdated")

// An OutdatedError says which token was refused. It matches [ErrOutdated].
type OutdatedError struct {
	Key     string
	Token   uint64 // the one that was refused
	Highest uint64 // the highest that has been seen
}

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("fence: token %d of %q is outdated: %d has been seen", e.Token, e.Key, e.Highest)
}

// Is reports whether target is [ErrOutdated].
func (e *OutdatedError) Is(target error) bool { return target == ErrOutdated }
