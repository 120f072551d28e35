// Package fence is the checking side of fencing tokens: the data that a lock guards rejects
// the writes of a holder that has lost the lock.
//
// A holder that is paused, or cut off, past the end of its lease does not know that another
// process holds the lock now, and goes on to write. But its token is smaller than the token
// of the new holder. So whatever keeps the data also keeps the highest token that it has
// seen, and rejects smaller ones. [SQL] does so in a table next to the data. [SQL.Do]
// combines the transaction, the check and the write:
//
//	var fences = fence.SQL{Dialect: dialect.Postgres}
//
//	err := locks.Do(ctx, "account/42", func(ctx context.Context) error {
//		return fences.Do(ctx, db, func(tx *sql.Tx) error {
//			// Read the balance and write the new one, in tx.
//		})
//	})
//
// If other work comes between the read and the write, call Do twice, with no transaction
// open in between. The second call rejects the write if another process has held the lock
// since. The first call makes the read safe: from then on no earlier holder can write, so
// the data read stays valid until a larger token comes. Without the first check, an earlier
// holder that was paused could write after the new holder's read and before the new
// holder's write, which would then overwrite that late write.
//
// In your own transaction, and on several keys, use [SQL.Check]:
//
//	err = fences.Check(ctx, tx, lock.Key(), lock.Fence())
//	if errors.Is(err, fence.ErrOutdated) {
//		// Another holder has had the lock since: roll back.
//	}
//
// If a lock guards a single row, a column of that row can replace the table:
//
//	UPDATE account SET fence = $1 WHERE id = $2 AND fence <= $1 RETURNING balance
//	UPDATE account SET balance = $1, fence = $2 WHERE id = $3 AND fence <= $2
//
// For an object in a bucket, [Object] keeps the token in the metadata of the object, and lets the
// bucket refuse the write.
//
// If a single process writes the data, it may keep the tokens in memory ([Memory]). Package
// httplock checks tokens that come with requests.
//
// An equal token passes, so a holder may write many times. Exclusive locks and writers fit;
// all readers of a phase share a token. Holders of slots hold at the same time, and a lock
// has no slot number: a check on a key that they share rejects the holder with the smaller
// token. Check the tokens of slots per unit of work, such as a job, that only one holder
// works on at a time.
package fence

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/shown"
)

// ErrOutdated says that a larger token has been seen, so the holder of the smaller token no
// longer holds the lock. [OutdatedError] has the details.
var ErrOutdated = errors.New("token is outdated")

// An OutdatedError says which token was rejected. The error matches [ErrOutdated].
type OutdatedError struct {
	Key     string
	Token   uint64 // the rejected token
	Highest uint64 // the highest token seen
}

func (e *OutdatedError) Error() string {
	return fmt.Sprintf("fence: token %d of %s is outdated: %d has been seen", e.Token, shown.Key(e.Key), e.Highest)
}

// Is reports whether target is [ErrOutdated].
func (e *OutdatedError) Is(target error) bool { return target == ErrOutdated }
