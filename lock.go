package holdfast

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// A Lock is held until Unlock, or until it is lost. The Locker renews the lock in the
// background. All methods may be called from many goroutines.
//
// If a Lock is garbage-collected without Unlock, the Locker logs the loss and stops the
// renewals. The key then stays locked until the TTL ends, even if the Locker is closed. A
// Lock is not collected while somebody waits for its Done or has a context of it.
type Lock struct {
	locker *Locker
	hold   *engine.Hold // shared by the handles of a re-entrant lock
	own    engine.Hold  // of the outermost handle

	released atomic.Bool // Unlock was called on the handle
}

// Key returns the key, without the Locker's prefix.
func (l *Lock) Key() string { return l.locker.shown(l.hold.Key()) }

// ID returns the public id of the lock's claim, under which [Locker.Holders] shows it and
// [Locker.Break] takes it.
func (l *Lock) ID() string { return driver.PublicID(l.hold.ID()) }

// Fence returns the fencing token. Pass the token to the resource that the lock guards, and
// let the resource reject smaller tokens. No other protection also holds if this process is
// paused for longer than the lease.
//
// The token is larger than the token of every earlier holder of the key; the readers of one
// read phase share a token, and a read lock has the token of its last [Lock.Upgrade]. Different
// keys may have equal tokens. Fence returns 0 if the store has no tokens, and after the lock has
// ended. Fence reads the clock, so a process that wakes from a pause does not get an old token: it
// uses one only if it has kept the token.
func (l *Lock) Fence() uint64 {
	if l.Err() != nil {
		return 0
	}
	return l.hold.Token()
}

// Deadline returns when the lock is lost if no renewal succeeds from now on, and false if
// the lock has no end of its own. Every renewal moves the deadline.
func (l *Lock) Deadline() (time.Time, bool) {
	now := time.Now() // first, since after a pause here the deadline may be too early, not too late
	left, ok := l.hold.Remaining()
	if !ok {
		return time.Time{}, false
	}
	return now.Add(left), true
}

// Err returns nil while the lock is held. After a loss the error matches [ErrLost], as a
// [*LostError]. After Unlock the error is [ErrReleased], or still the loss. After Close
// the error is [ErrClosed]. Err reads the clock, so a process that wakes from a pause or
// a suspend learns of the loss at once.
func (l *Lock) Err() error {
	err := l.hold.Err()
	if err == nil && l.released.Load() {
		err = ErrReleased
	}
	return wrap("hold", l.Key(), err)
}

// Progress reports that the work under the lock goes on (see the option [Progress]; without
// it, Progress reports nothing). Progress does no I/O, so a loop may call it for every item.
// It returns the result of Err.
func (l *Lock) Progress() error {
	if !l.released.Load() {
		l.hold.Progress()
	}
	return l.Err()
}

// Done returns a channel that is closed when the lock ends, by Unlock or by a loss. After
// a loss the channel is closed before anyone else can hold the key. A re-entrant lock
// ends with the outermost handle.
func (l *Lock) Done() <-chan struct{} { return l.hold.Done() }

// Unlock releases the lock. It takes no context, so a cancelled request still releases its
// lock. Unlock takes as long as the store needs to answer, at most about three seconds.
// After that the release goes on in the background, and the lock ends with its TTL at the
// latest.
//
// If other processes want the key, or did a second ago in session mode, and this process locks the
// key again and again without a pause, Unlock may park the claim: the Locker releases the claim 50
// microseconds later, if no Lock of this process comes before. Such a turn begins no lock after a
// millisecond. Until the release, other processes are refused. If this process ends without Close,
// or stops, in that time, the others wait for the TTL at most. A failure of that release is not
// returned. The Trace has the Unlocks that parked, see [Event].
//
// If an upgrade of the lock is held, Unlock releases the upgrade first (see [Lock.Upgrade]), and may
// take twice as long.
//
// If the lock was lost before, Unlock returns an error that matches [ErrLost]: the work
// that the lock guarded may not have been alone. A second Unlock returns [ErrReleased] and
// changes nothing.
func (l *Lock) Unlock() error {
	if !l.released.CompareAndSwap(false, true) {
		return wrap("unlock", l.Key(), ErrReleased)
	}
	return wrap("unlock", l.Key(), l.hold.Unlock())
}
