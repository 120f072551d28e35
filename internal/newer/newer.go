// Package newer refuses the records of a newer release.
//
// Each record that a store keeps has the number of its format. A release that meets a
// larger number than it knows cannot tell what the record says. So it neither grants beside
// the record, nor changes it, nor takes it for expired.
package newer

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// What to do instead of an upgrade, by where the record goes.
const (
	Passes = "wait until no newer release holds the key"              // the record ends with its claims
	Stays  = "remove the record once no newer release uses the store" // the record outlives its claims
)

// An Error says that a record has a format that this release does not know. It matches
// [driver.ErrInvalid], because the same call fails until somebody acts. It matches
// [driver.ErrUnwritten], because nothing was changed.
type Error struct {
	Key          string
	Found, Known int64
	Otherwise    string // what to do instead of an upgrade
}

func (e *Error) Error() string {
	text := fmt.Sprintf("the record of key %q has format %d, and this release knows format %d: ", e.Key, e.Found, e.Known)
	if e.Found < e.Known {
		return text + "no release writes it, so something else has; " + e.Otherwise
	}
	return text + "upgrade this program, or " + e.Otherwise
}

// Is implements the match of [errors.Is].
func (e *Error) Is(target error) bool {
	return target == driver.ErrInvalid || target == driver.ErrUnwritten
}

// Doubtful returns err without the match of [driver.ErrUnwritten], for a call that has written
// something before it met the record.
func Doubtful(err error) error {
	if errors.As(err, new(*Error)) {
		return fmt.Errorf("%w: %s", driver.ErrInvalid, err)
	}
	return err
}

// Check returns an [Error] if the record of a key has another format than the known one.
// There is no older format than the first.
func Check(key string, found, known int64, otherwise string) error {
	if found == known {
		return nil
	}
	return &Error{key, found, known, otherwise}
}
