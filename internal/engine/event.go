package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/caller"
)

// The errors of the engine. Package holdfast exports them and says what they mean.
var (
	ErrReleased  = errors.New("lock is released")
	ErrClosed    = errors.New("locker is closed")
	ErrNotFenced = errors.New("store has no fencing tokens")
	ErrUpgraded  = fmt.Errorf("%w: the lock is upgraded already; unlock the upgrade first", caller.ErrDeadlock)
)

// A Refusal describes the holder of a key, as far as the process knows.
type Refusal struct {
	Owner, Note string
	Since       time.Time     // by the store's clock; zero if unknown
	Left        time.Duration // until the holder's lease expires without a renewal; 0 if unknown
	Err         error         // why the store would refuse even without the holder
	Here        bool          // this engine holds the key
}

func refusalOf(g driver.Grant) *Refusal {
	return &Refusal{Owner: g.Holder.Owner, Note: g.Holder.Note, Since: g.Holder.Since, Left: g.Left, Err: g.Blocked}
}

// A Reason is why a hold was lost.
type Reason int

// The reasons for a loss.
const (
	Expired     Reason = iota // the lease expired
	Unreachable               // no renewal succeeded before the deadline
	Taken                     // the store no longer knows the claim
	Broken                    // an operator ended the claim
	TooLong                   // held for longer than MaxHold
	Stalled                   // no progress was reported in time
	Dropped                   // garbage-collected without Unlock
)

// A Loss says why a hold was lost.
type Loss struct {
	Reason Reason
	Err    error // the last error of the store; nil if there was none
}

// lossOf converts a store's certain loss.
func lossOf(err error) *Loss {
	if errors.Is(err, driver.ErrBroken) {
		return &Loss{Reason: Broken}
	}
	return &Loss{Reason: Taken, Err: err}
}

// Words make the errors that callers see of the facts that the engine knows. The functions
// may run with the mutex locked, and must not call the engine.
type Words struct {
	Held  func(*Refusal) error
	Ahead func(*Refusal) error // an upgrade is refused, because this claim waits for its reader
	Lost  func(*Loss) error
}

// Hooks observe the engine. Every function may be nil. The functions are called without the
// mutex, from the goroutine in which the event happens.
type Hooks struct {
	Wanted    func(Event)          // a call wants a hold
	Tried     func(Event)          // the store was asked and did not grant; Err says why
	Locked    func(Event)          // a caller has a hold after Waited
	GaveUp    func(Event)          // a call has ended without a hold after Waited; Err says why
	Renewed   func(Event)          // the lease is renewed
	AtRisk    func(Event)          // half of the TTL is gone without a renewal; Err is the last failure
	Lost      func(Event, Loss)    // the hold has ended after Held without an Unlock
	Unlocked  func(Event)          // Err is nil if the store has confirmed the release, or if Parked
	Unwatched func(Event)          // the store cannot wake waiters; Again if that is known
	Stuck     func(Event, Refusal) // a call waits for a hold of this engine that lasts
}

// An Event is one step in the life of a hold.
type Event struct {
	Context context.Context // of the call; nil if no hook needs the context
	Key     string          // as stored
	Fence   uint64
	Waited  time.Duration
	Held    time.Duration
	Err     error
	Again   bool // Unwatched: reported before, or the watch was cut short
	Parked  bool // Unlocked: the process keeps the claim for a moment
}

// timed reports whether a hook needs the duration of a wait.
func (h *Hooks) timed() bool { return h.Tried != nil || h.Locked != nil || h.GaveUp != nil }

func emit(hook func(Event), e Event) {
	if hook != nil {
		hook(e)
	}
}
