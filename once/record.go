package once

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/fence"
)

// A State is the progress of an effect.
type State uint8

// The states of an effect.
const (
	Free  State = iota // not begun, or released without a result
	Begun              // by the holder of the record's token, who may have died since
	Done               // the record has the result
)

// A Record is the remembered state of a key. The zero value is the record of a key of
// which nothing is remembered.
type Record struct {
	State       State
	Token       uint64 // the largest token that has begun; once Done, the token of the result
	Fingerprint string // as given to Begin; "" while Free
	Result      []byte // only if Done
}

// Records remember begun effects and results. [Memory], [File] and [SQL] implement
// Records; all pass the test suite of package oncetest. All methods may be called
// concurrently, and every method is atomic for its key.
//
// The fencing tokens of the locks that [Runner.Begin] acquires decide: a later owner of a key
// has a larger token. A method called with a smaller token than the remembered token
// changes nothing and returns an error that matches [fence.ErrOutdated]. A former owner
// can therefore neither overwrite the result of a later owner nor create a record for
// an effect nobody has begun. After every other error the outcome is unknown. Repeating
// a call with the same token has the effect of a single call.
//
// A record expires when its time, keep, is over. If the records have a clock of their
// own, that clock alone decides. An expired record takes up no room for long.
type Records interface {
	// Load returns the record of a key, the zero Record if there is none.
	Load(ctx context.Context, key string) (Record, error)

	// Begin remembers for keep that the holder of token has begun the effect, and
	// returns the record after the call. Begin does not change a record that is Done,
	// or Begun with a different fingerprint. It returns a record that is Done to a smaller
	// token, too, without an error.
	Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (Record, error)

	// Finish remembers the result for keep from now. The error matches
	// fence.ErrOutdated also if nobody has begun with token, or if the begun record was
	// forgotten. If the record is Done by token, Finish changes nothing.
	Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error

	// Forget makes a record Free, even a record that is Done, and gives the record this
	// token, for the rest of the record's time. If there is no record, Forget changes
	// nothing.
	Forget(ctx context.Context, key string, token uint64) error
}

// AfterBegin returns the record after Begin, and whether the record has changed.
// AfterBegin, AfterFinish and AfterForget are for implementations of Records.
func (r Record) AfterBegin(key string, token uint64, fingerprint string) (next Record, changed bool, err error) {
	switch {
	case r.State == Done:
		return r, false, nil
	case r.Token > token:
		return r, false, &fence.OutdatedError{Key: key, Token: token, Highest: r.Token}
	case r.State == Begun && r.Fingerprint != fingerprint:
		return r, false, nil
	}
	return Record{State: Begun, Token: token, Fingerprint: fingerprint}, true, nil
}

// AfterFinish returns the record after Finish, and whether the record has changed.
func (r Record) AfterFinish(key string, token uint64, result []byte) (next Record, changed bool, err error) {
	switch {
	case r.Token > token:
		return r, false, &fence.OutdatedError{Key: key, Token: token, Highest: r.Token}
	case r.Token < token || r.State == Free:
		return r, false, fmt.Errorf("%w: nothing is remembered of token %d: it has not begun, was forgotten, or its time is over", fence.ErrOutdated, token)
	case r.State == Done:
		return r, false, nil
	}
	r.State, r.Result = Done, result
	return r, true, nil
}

// AfterForget returns the record after Forget, and whether the record has changed.
func (r Record) AfterForget(key string, token uint64) (next Record, changed bool, err error) {
	switch {
	case r.Token > token:
		return r, false, &fence.OutdatedError{Key: key, Token: token, Highest: r.Token}
	case r.Token == 0:
		return r, false, nil
	}
	return Record{Token: token}, true, nil
}
