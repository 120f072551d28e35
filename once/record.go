package once

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/fence"
)

// A State is how far an effect has come.
type State uint8

// The states of an effect.
const (
	Free  State = iota // not begun, or given back
	Begun              // by the holder of the record's token, who may have died since
	Done               // and its result is in the record
)

// A Record is what is remembered of one key. The zero value is that of a key of
// which nothing is remembered.
type Record struct {
	State       State
	Token       uint64 // the largest that has begun, which is that of the result once it is Done
	Fingerprint string // as it was begun with; "" while it is Free
	Result      []byte // only if it is Done
}

// Records remember what was begun and what is done. [Memory], [File] and [SQL]
// are some; package oncetest holds the suite that all pass. All methods may be
// called at the same time, and each is atomic for its key.
//
// Tokens decide: they are those of the locks that [Begin] takes, larger for each
// later owner of a key. A method that is given a smaller token than the one
// remembered changes nothing and returns an error that matches
// [fence.ErrOutdated]. So a former owner can neither overwrite what a later one
// has done nor make a record that nobody has begun. Any other error means that
// the outcome is unknown; to call again with the same token is to call once.
//
// What is remembered of a key ends when its time, keep, is over, by the one clock
// of the records where they have one, and takes no room for long after that.
type Records interface {
	// Load returns the record of a key, the zero Record if there is none.
	Load(ctx context.Context, key string) (Record, error)

	// Begin remembers for keep that the holder of token has begun the effect,
	// and returns the record as it is then. A record that is Done stays, and so
	// does one that is Begun with another fingerprint.
	Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (Record, error)

	// Finish remembers the result for keep from now. The error matches
	// fence.ErrOutdated also if nobody has begun with this token, or what that
	// left was forgotten. It changes nothing if the record is Done by this token.
	Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error

	// Forget makes a record Free, also one that is Done, and gives it this token,
	// for what is left of its time. It changes nothing if there is no record.
	Forget(ctx context.Context, key string, token uint64) error
}

// AfterBegin is what Begin makes of a record, and whether that is a change. It is
// for those who write Records, as are AfterFinish and AfterForget.
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

// AfterFinish is what Finish makes of a record, and whether that is a change.
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

// AfterForget is what Forget makes of a record, and whether that is a change.
func (r Record) AfterForget(key string, token uint64) (next Record, changed bool, err error) {
	switch {
	case r.Token > token:
		return r, false, &fence.OutdatedError{Key: key, Token: token, Highest: r.Token}
	case r.Token == 0:
		return r, false, nil
	}
	return Record{Token: token}, true, nil
}
