package holdfast

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// The errors that callers act on. Every error of this package that concerns a key is an
// [*Error], which names the key and unwraps to one of these errors or to the error of the
// store.
//
// An error matches [context.Canceled] or [context.DeadlineExceeded] only if the caller's
// own context has ended. If a store has not answered in time, the error matches
// [os.ErrDeadlineExceeded].
var (
	// ErrHeld: another holder has the lock. [HeldError] has the facts.
	ErrHeld = caller.ErrHeld

	// ErrLost: the lock, or a place in the queue, ended before its owner released it.
	// [LostError] says why.
	ErrLost = errors.New("lock is lost")

	// ErrReleased: the lock was unlocked before.
	ErrReleased = engine.ErrReleased

	// ErrClosed: the Locker was closed.
	ErrClosed = engine.ErrClosed

	// ErrDeadlock: the call would wait for a lock that its own context holds, or its
	// transaction would wait for another that in turn waits for it. Or the call would upgrade
	// a read lock for which another claim waits (see [Lock.Upgrade]).
	ErrDeadlock = caller.ErrDeadlock

	// ErrInvalid: an option is wrong, or the store can never do what was requested. A
	// retry cannot help.
	ErrInvalid = driver.ErrInvalid

	// ErrInvalidKey is the ErrInvalid of a key that is empty, too long or not UTF-8.
	ErrInvalidKey = fmt.Errorf("%w: not a key", ErrInvalid)

	// ErrNotFenced: Fenced was requested, but the store has no fencing tokens.
	ErrNotFenced = engine.ErrNotFenced
)

var (
	errCarried = fmt.Errorf("%w: the context holds this lock already; Reenter would enter it again", ErrDeadlock)
	errLighter = fmt.Errorf("%w: the context holds this lock with less weight; unlock it first, or upgrade a read lock", ErrDeadlock)
	errUpgrade = errors.New("only a lock that was acquired with Shared can be upgraded")
)

// An Error is a failed operation on a key. Test for the errors above with [errors.Is], and read
// a [HeldError] or a [LostError] with [errors.As].
type Error struct {
	Op  string // the method in lower case, such as "lock", "trylock" or "unlock"
	Key string // as the caller gave it, without the prefix
	Err error  // the reason; never nil
}

func (e *Error) Error() string {
	return fmt.Sprintf("holdfast: %s %s: %v", e.Op, shown.Key(e.Key), e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

func wrap(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Key: key, Err: err}
}

// An inputError describes a wrong argument, in its own words.
type inputError struct {
	error
	kind error // ErrInvalid or ErrInvalidKey
}

func (e inputError) Is(target error) bool { return errors.Is(e.kind, target) }

func (e inputError) Unwrap() error { return e.error }

func invalid(kind, err error) error {
	if err == nil {
		return nil
	}
	return inputError{err, kind}
}

// A HeldError describes the holder of a refused lock, as far as the store knows. The
// error matches [ErrHeld]. The error text cuts a long Owner or Note.
//
// If the Locker that refused the call holds the lock itself, the error text says so. Usual
// causes are a nested call that does not pass on [Lock.Context], or an Unlock deferred in
// a loop.
type HeldError struct {
	Owner string        // "" if unknown
	Note  string        // the holder's note
	Since time.Time     // by the store's clock; zero if unknown
	Left  time.Duration // until the holder's lease expires without a renewal; 0 if unknown
	Err   error         // why the store would refuse the lock even without the holder; mostly nil

	here bool // the Locker that was asked is itself the holder
}

func (e *HeldError) Error() string {
	var b strings.Builder
	if e.Err != nil {
		fmt.Fprintf(&b, "%v; held, or only wanted, by ", e.Err)
	} else {
		b.WriteString("held by ")
	}
	if e.here {
		b.WriteString("this Locker itself, ")
	}
	if e.Owner == "" {
		b.WriteString("another")
	} else {
		b.WriteString(shown.Text(e.Owner))
	}
	if e.Note != "" {
		fmt.Fprintf(&b, " (%s)", shown.Text(e.Note))
	}
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, " since %s", e.Since.Format(time.RFC3339))
	}
	if e.Left > 0 {
		fmt.Fprintf(&b, ", for another %v unless renewed", e.Left.Round(time.Millisecond))
	}
	return b.String()
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

func (e *HeldError) Unwrap() error { return e.Err }

func heldError(r *engine.Refusal) error {
	return &HeldError{Owner: r.Owner, Note: r.Note, Since: r.Since, Left: r.Left, Err: r.Err, here: r.Here}
}

// aheadError refuses an upgrade because of a claim that waits ahead.
func aheadError(r *engine.Refusal) error {
	return fmt.Errorf("%w: %s waits for this read lock; unlock it, and lock the key exclusively",
		ErrDeadlock, cmp.Or(shown.Text(r.Owner), "another holder"))
}

// A LossReason is why a lock was lost, in a word or two. Use it for metrics and logs: a new
// release may add reasons.
type LossReason string

// The reasons for a loss.
const (
	LossExpired     LossReason = "expired"       // the lease expired, as with NoRenew or after a suspend
	LossUnreachable LossReason = "unreachable"   // no renewal succeeded before the deadline
	LossTaken       LossReason = "taken"         // the store no longer knows the claim
	LossBroken      LossReason = "broken"        // an operator ended the claim
	LossMaxHold     LossReason = "held too long" // longer than MaxHold
	LossStalled     LossReason = "no progress"   // reported within the time of Progress
	LossDropped     LossReason = "dropped"       // garbage-collected without Unlock
)

// A LostError says why a lock was lost. It matches [ErrLost]. A caller learns of a loss from
// [Lock.Err], from [Lock.Done] and from the cause of a context made by [Lock.Context].
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

// lossReasons are the words for the reasons of the engine.
var lossReasons = [...]LossReason{
	engine.Expired:     LossExpired,
	engine.Unreachable: LossUnreachable,
	engine.Taken:       LossTaken,
	engine.Broken:      LossBroken,
	engine.TooLong:     LossMaxHold,
	engine.Stalled:     LossStalled,
	engine.Dropped:     LossDropped,
}

func lostError(l *engine.Loss) error {
	return &LostError{Reason: lossReasons[l.Reason], Err: l.Err}
}
