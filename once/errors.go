package once

import "errors"

var (
	// ErrMismatch: the key was begun, or is done, with a different fingerprint. The key
	// was reused for something else.
	ErrMismatch = errors.New("key was used with another fingerprint")

	// ErrUnrecorded: the effect has run, but the result could not be remembered, so the
	// effect may run again. The error contains the reason. If the error also matches
	// [fence.ErrOutdated], a later owner has begun since the lock was lost.
	ErrUnrecorded = errors.New("effect has run but is not remembered")

	// ErrTooLarge: the result has more than [MaxResult] bytes.
	ErrTooLarge = errors.New("result is too large")

	errRecords = errors.New("effect was begun in other records")

	errNotOwned = errors.New("effect is done or closed, so it cannot be finished")
)

// An inputError describes an invalid argument, in its own words.
type inputError struct {
	kind  error // holdfast.ErrInvalid or holdfast.ErrInvalidKey
	words error
}

func (e *inputError) Error() string { return e.words.Error() }

func (e *inputError) Is(target error) bool { return errors.Is(e.kind, target) }
