package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// What callers act on. Every error of this package that concerns a key is an
// [*Error], which names the key and unwraps to one of these or to the error of
// the store.
var (
	// ErrHeld: the lock is held by another. [HeldError] has the facts.
	ErrHeld = driver.ErrHeld

	// ErrLost: the lock, or a place in line for it, ended before its owner gave
	// it back. [LostError] says why.
	ErrLost = errors.New("lock is lost")

	// ErrReleased: the lock was unlocked before.
	ErrReleased = errors.New("lock is released")

	// ErrClosed: the Locker was closed.
	ErrClosed = errors.New("locker is closed")

	// ErrDeadlock: the call would wait for a lock that its own context holds, or
	// its transaction for one that in turn waits for it.
	ErrDeadlock = driver.ErrDeadlock

	// ErrInvalid: an option is wrong, or the store can never do what was asked of
	// it. To ask again is in vain.
	ErrInvalid = driver.ErrInvalid

	// ErrKey is the ErrInvalid of a key that is empty, too long or not UTF-8.
	ErrKey = fmt.Errorf("%w: not a key", ErrInvalid)

	// ErrNotFenced: Fenced was asked for, but the store has no fencing tokens.
	ErrNotFenced = errors.New("store has no fencing tokens")
)

// An Error is a failed operation on a key.
type Error struct {
	Op  string // the method, such as "lock"
	Key string
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("holdfast: %s %q: %v", e.Op, e.Key, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Key: key, Err: err}
}

// An inputError is what is wrong with an argument, in words of its own.
type inputError struct {
	error
	kind error // ErrInvalid or ErrKey
}

func (e inputError) Is(target error) bool { return errors.Is(e.kind, target) }

func (e inputError) Unwrap() error { return e.error }

func invalid(kind, err error) error {
	if err == nil {
		return nil
	}
	return inputError{err, kind}
}

// A HeldError says who holds a lock that was refused, as far as the store
// knows. It matches [ErrHeld].
type HeldError struct {
	Owner string        // "" if unknown
	Note  string        // what the holder said about it
	Since time.Time     // by the store's clock; zero if unknown
	Retry time.Duration // when the holder's lease runs out unless it is renewed; 0 if unknown
}

func (e *HeldError) Error() string {
	var b strings.Builder
	b.WriteString("held by ")
	if e.Owner == "" {
		b.WriteString("another")
	} else {
		fmt.Fprintf(&b, "%q", e.Owner)
	}
	if e.Note != "" {
		fmt.Fprintf(&b, " (%q)", e.Note)
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.Format(time.RFC3339))
	}
	if e.Retry > 0 {
		fmt.Fprintf(&b, ", for another %v unless renewed", e.Retry.Round(time.Millisecond))
	}
	return b.String()
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func heldError(g driver.Grant) *HeldError {
	return &HeldError{Owner: g.Holder.Owner, Note: g.Holder.Note, Since: g.Holder.Since, Retry: g.Retry}
}

// A LossReason is why a lock was lost, in a word or two.
type LossReason string

// The reasons for a loss.
const (
	LossExpired     LossReason = "expired"       // the lease ran out, as with NoRenew or after a suspend
	LossUnreachable LossReason = "unreachable"   // no renewal got through before the deadline
	LossTaken       LossReason = "taken"         // the store no longer knows the claim
	LossBroken      LossReason = "broken"        // an operator ended it
	LossMaxHold     LossReason = "held too long" // longer than MaxHold
	LossDropped     LossReason = "dropped"       // garbage-collected without Unlock
)

// A LostError says why a lock was lost. It matches [ErrLost].
type LostError struct {
	Reason LossReason
	Err    error // the last error of the store; nil if there was none
}

func (e *LostError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%v: %s", ErrLost, e.Reason)
	}
	return fmt.Sprintf("%v: %s: %v", ErrLost, e.Reason, e.Err)
}

// Is reports whether target is [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost }

func (e *LostError) Unwrap() error { return e.Err }

// lossOf reads a store's certain loss.
func lossOf(err error) *LostError {
	if errors.Is(err, driver.ErrBroken) {
		return &LostError{Reason: LossBroken}
	}
	return &LostError{Reason: LossTaken, Err: err}
}
