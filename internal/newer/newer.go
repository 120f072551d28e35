// Package newer refuses the records of a newer release.
//
// Every record in a store has the number of a format. A release cannot read a record with a
// larger number than the release's own. So the release grants no claim beside the record,
// does not change the record, and does not treat the record as expired.
package newer

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// The advice beside an upgrade, by how long the record stays.
const (
	Passes = "wait until no newer release holds the key"              // the record ends with its claims
	Stays  = "remove the record once no newer release uses the store" // the record outlives its claims
)

// An Error reports a record in an unknown format. The error matches [driver.ErrInvalid],
// because the same call fails until somebody acts, and [driver.ErrUnwritten], because the
// store is unchanged.
type Error struct {
	Key          string
	Found, Known int64
	Otherwise    string // the advice beside an upgrade
}

func (e *Error) Error() string {
	text := fmt.Sprintf("the record of key %q has format %d, and this release knows format %d: ", e.Key, e.Found, e.Known)
	if e.Found < e.Known {
		return text + "no release writes it, so something else has; " + e.Otherwise
	}
	return text + "upgrade this program, or " + e.Otherwise
}

// Is is for [errors.Is].
func (e *Error) Is(target error) bool {
	return target == driver.ErrInvalid || target == driver.ErrUnwritten
}

// Doubtful returns err without the match of [driver.ErrUnwritten], for a call that has already
// written to the store.
func Doubtful(err error) error {
	if errors.As(err, new(*Error)) {
		return fmt.Errorf("%w: %s", driver.ErrInvalid, err)
	}
	return err
}

// Check returns an [Error] unless the record of a key has the known format. No release has
// written an older format.
func Check(key string, found, known int64, otherwise string) error {
	if found == known {
		return nil
	}
	return &Error{key, found, known, otherwise}
}
