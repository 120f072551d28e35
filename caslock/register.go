package caslock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// ErrConflict says that a swap was certainly not carried out, and never will be: the record
// has another version.
var ErrConflict = errors.New("the record has another version")

// A ConflictError is an ErrConflict of an engine that tells in the refusal which record the key has
// instead. The Store then needs no Read after the refusal.
type ConflictError struct {
	Record Record
}

func (e *ConflictError) Error() string { return ErrConflict.Error() }

// Is reports that a ConflictError matches ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// A Record is the state of a key in a [Register]. The zero Record says that the key has no
// record.
type Record struct {
	// Version names this state of the record, in the words of the engine: a revision, a
	// generation, an ETag. It is not empty. A later state of the key has another version. A
	// version may be a digest of Data, because caslock never writes the same data twice.
	Version string
	Data    []byte // JSON; caslock does not change the slice
}

// String shows the version and the size: the data has the secrets of the owners.
func (r Record) String() string {
	if r.Version == "" {
		return "no record"
	}
	return fmt.Sprintf("version %s, %d bytes", r.Version, len(r.Data))
}

// A Register keeps one record for each key, and swaps a record only if its version is as
// expected. All methods may be called at the same time, but a [Store] has at most one call of
// Swap for a key under way. Every call ends with its context, even if the engine never answers.
//
// A key has 1 to driver.MaxKey bytes of UTF-8, of any kind: slashes, spaces and NUL as well.
// The Register maps different keys to different names. A name may be a digest of the
// key, since the data contains the key.
type Register interface {
	// Read returns the record of a key, the zero Record if there is none. Version and Data come
	// from one write. A Read that returns the version of a write with the data of an earlier
	// write lets two holders in: a swap decided on the old data then succeeds. A record that is
	// out of date costs time, but no promise. For a key that is in use, Read should mostly
	// return the last record.
	Read(ctx context.Context, key string) (Record, error)

	// Swap replaces the record of a key by data if the record has the given version, and
	// returns the new version. If version is empty, Swap creates the record if there is none.
	//
	//   - An error that matches ErrConflict: nothing was changed, nor ever will be. A ConflictError
	//     also has the record that the engine compared.
	//   - An error that matches driver.ErrUnwritten: the same, because nothing was sent.
	//   - An error that matches driver.ErrInvalid: the same, and the engine can never keep
	//     such a record. caslock returns the error to the caller.
	//   - Another error: the outcome is unknown. The engine may carry the swap out at any
	//     later time, unless the version has changed by then.
	//
	// Swap sends one request. The client library must not repeat the request by itself: if
	// the answer to the first was lost, the second would report a conflict with itself.
	//
	// The engine may remove the record when keep has passed since the swap, and not before.
	// keep is more than an hour.
	Swap(ctx context.Context, key, version string, data []byte, keep time.Duration) (next string, err error)

	// List yields the records, at least of the keys that begin with prefix, in no order. A record
	// that changes meanwhile may come twice. An error ends the sequence.
	List(ctx context.Context, prefix string) iter.Seq2[Record, error]
}

// A Watcher is a [Register] that reports changes. A Register without Watch is read again and
// again while claims wait.
type Watcher interface {
	Register

	// Watch calls changed, from any goroutine but never at the same time, with each new
	// record of the key, in order. Watch may leave out a record if a newer record follows. The
	// zero Record says that the caller should read: the record was removed, or reports may have
	// been missed. changed does not block.
	//
	// The watch outlives ctx, which bounds only the call. stop ends the watch, and does not
	// wait for changed. A call of changed that was under way may still come. stop does not block.
	Watch(ctx context.Context, key string, changed func(Record)) (stop func(), err error)
}

// A Clock is a [Register] whose engine tells the time. Fencing tokens then do not depend on
// the clocks of the processes.
type Clock interface {
	// Now returns about the time of the engine. The Store calls Now before the first swap of each
	// call, and before each swap of a key without a record, so Now rarely sends a request. Now need
	// not be exact. Leases do not depend on Now. Tokens depend on Now only after the record of a key
	// was removed: to grow then, an answer must not be behind an earlier answer by more than the time
	// since the last token of the key. The engine itself removes a record after keep, so an error of
	// less than an hour is harmless.
	Now(ctx context.Context) (time.Time, error)
}
