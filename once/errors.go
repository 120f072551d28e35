package once

import "errors"

var (
	// ErrMismatch: the key was begun, or is done, with another fingerprint: it
	// was used again for something else.
	ErrMismatch = errors.New("key was used with another fingerprint")

	// ErrUnrecorded: the effect has run, but its result could not be remembered,
	// so it may run again. The error says why; one that also matches
	// [fence.ErrOutdated] says that another has begun since, after the lock was
	// lost.
	ErrUnrecorded = errors.New("effect has run but is not remembered")

	// ErrTooLarge: the result has more than [MaxResult] bytes.
	ErrTooLarge = errors.New("result is too large")

	errRecords = errors.New("effect was begun in other records")

	errNotOwned = errors.New("effect is done or closed, so it cannot be finished")
)

// An inputError is what is wrong with an argument, in words of its own.
type inputError struct {
	kind  error // holdfast.ErrInvalid or holdfast.ErrKey
	words error
}

func (e *inputError) Error() string { return e.words.Error() }

func (e *inputError) Is(target error) bool { return errors.Is(e.kind, target) }
