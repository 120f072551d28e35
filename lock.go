package holdfast

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Lock is held until Unlock, or until it is lost. The Locker renews the lock in the
// background. All methods may be called from many goroutines.
//
// If a Lock is garbage-collected without Unlock, the Locker logs the loss and stops the
// renewals. The key then stays locked until the TTL ends, even if the Locker is closed. A
// Lock is not collected while somebody waits for its Done or has a context of it.
type Lock struct {
	lease *lease
	outer *Lock // for a re-entrant lock: the outermost handle, with the state

	fence   uint64
	since   time.Duration
	until   time.Duration // end of MaxHold; 0: none
	atLeast time.Duration

	end      atomic.Pointer[ending] // nil while the lock is held
	released atomic.Bool            // Unlock was called on the handle

	// Guarded by Locker.mu.
	entries  int32 // handles not yet unlocked
	done     chan struct{}
	contexts holdings
	first    holding // part of contexts; its Context is nil until first used
}

// An ending is the reason why a lock is no longer held.
type ending struct{ err error }

var released = &ending{ErrReleased}

// newLock returns a lock that uses the lease from now on.
func (l *lease) newLock(held term, now time.Duration) *Lock {
	l.ctx = held.ctx
	lock := &Lock{lease: l, fence: l.fence, since: now, atLeast: held.atLeast, entries: 1}
	if held.maxHold > 0 {
		lock.until = now + held.maxHold
	}
	return lock
}

func (l *Lock) root() *Lock {
	if l.outer != nil {
		return l.outer
	}
	return l
}

// Key returns the key, without the Locker's prefix.
func (l *Lock) Key() string { return l.lease.lk.shown(l.lease.claim().Key) }

// ID returns the public id of the lock's claim, under which [Locker.Holders] shows it and
// [Locker.Break] takes it.
func (l *Lock) ID() string { return driver.PublicID(l.lease.claim().ID) }

// Fence returns the fencing token. Pass the token to the resource that the lock guards, and
// let the resource reject smaller tokens. No other protection also holds if this process is
// paused for longer than the lease.
//
// The token is larger than the token of every earlier holder of the key; the readers of one
// read phase share a token. Fence returns 0 if the store has no tokens, and after the lock
// has ended. Fence reads the clock, so a process that wakes from a pause does not get an
// old token: it uses one only if it has kept the token.
func (l *Lock) Fence() uint64 {
	if l.Err() != nil {
		return 0
	}
	return l.root().fence
}

// Deadline returns when the lock is lost if no renewal succeeds from now on, and false if
// the lock has no end of its own. Every renewal moves the deadline.
func (l *Lock) Deadline() (time.Time, bool) {
	left, ok := l.lease.remaining(l.lease.lk.now())
	if !ok {
		return time.Time{}, false
	}
	return time.Now().Add(left), true
}

// Err returns nil while the lock is held. After a loss the error matches [ErrLost], as a
// [*LostError]. After Unlock the error is [ErrReleased], or still the loss. After Close
// the error is [ErrClosed]. Err reads the clock, so a process that wakes from a pause or
// a suspend learns of the loss at once.
func (l *Lock) Err() error {
	r := l.root()
	r.check()
	if e := r.end.Load(); e != nil {
		return wrap("hold", l.Key(), e.err)
	}
	if l.released.Load() {
		return wrap("hold", l.Key(), ErrReleased)
	}
	return nil
}

// check ends the lock as lost if the lock's time is over.
func (l *Lock) check() {
	lk := l.lease.lk
	now := lk.now()
	if l.end.Load() != nil || !l.overdue(now) {
		return
	}
	lk.mu.Lock()
	why := l.over(now)
	lk.mu.Unlock()
	if why != nil {
		l.lose(why)
	}
}

// overdue needs no mutex: the end of MaxHold is fixed, the deadline atomic.
func (l *Lock) overdue(now time.Duration) bool {
	left, ok := l.lease.remaining(now)
	return ok && left <= 0 || l.until > 0 && now >= l.until
}

// over says why the lock's time is over; nil if the time is not over. Call over with
// Locker.mu held.
func (l *Lock) over(now time.Duration) *LostError {
	switch {
	case !l.overdue(now):
		return nil
	case l.until > 0 && now >= l.until:
		return &LostError{Reason: LossMaxHold}
	case l.lease.failure != nil:
		return &LostError{Reason: LossUnreachable, Err: l.lease.failure}
	}
	return &LostError{Reason: LossExpired}
}

// Done returns a channel that is closed when the lock ends, by Unlock or by a loss. After
// a loss the channel is closed before anyone else can hold the key. A re-entrant lock
// ends with the outermost handle.
func (l *Lock) Done() <-chan struct{} {
	r := l.root()
	lk := r.lease.lk
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if r.done == nil {
		r.done = make(chan struct{})
		if r.end.Load() != nil {
			close(r.done)
		} else {
			r.lease.tighten(r)
		}
	}
	return r.done
}

// finish ends the lock for the holder, once. The result is true for the call that ended
// the lock.
func (l *Lock) finish(e *ending) bool {
	lk := l.lease.lk
	lk.mu.Lock()
	first := l.end.Load() == nil
	var contexts holdings
	if first {
		contexts = l.close(e)
		lk.renewer.remove(l.lease)
	}
	lk.mu.Unlock()
	contexts.end()
	return first
}

// close ends a lock that has not ended. Call close with Locker.mu held; end the contexts
// that it returns once Locker.mu is free.
func (l *Lock) close(e *ending) holdings {
	l.end.Store(e)
	if l.done != nil {
		close(l.done)
	}
	contexts := l.contexts
	l.contexts = holdings{}
	return contexts
}

// lose ends a lost lock. It notifies the holder first; then other calls of this process may
// request the key. It sends nothing to the store, which counts down the same lease: the
// time until the lease ends is left to the holder to stop.
func (l *Lock) lose(why *LostError) {
	if !l.finish(&ending{why}) {
		return
	}
	lease, lk := l.lease, l.lease.lk
	lk.drop(lease)
	e := l.event()
	e.Err = why
	emit(lk.opts.Trace.Lost, e)
	lk.log(slog.LevelWarn, "lock is lost", "key", e.Key, "fence", e.Fence, "reason", string(why.Reason), "error", why.Err)
}

// dropped reports, once, that the holder of a lease is gone without an Unlock. The
// holder's work may go on, so the key stays locked until the TTL ends.
func (l *lease) dropped() {
	lk := l.lk
	if !lk.drop(l) {
		return
	}
	e := l.event(l.taken)
	e.Err = &LostError{Reason: LossDropped}
	lk.log(slog.LevelError, "lock was dropped without Unlock and is no longer renewed", "key", e.Key, "fence", e.Fence)
	emit(lk.opts.Trace.Lost, e)
}

// drop removes a lease and lets the first waiter contend. The result is true for the call
// that removed the lease.
func (lk *Locker) drop(l *lease) bool {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	first := l.turn.dismiss(l)
	if first {
		lk.pump(l.turn)
	}
	return first
}

// notified receives a loss from the store.
func (lk *Locker) notified(key, id string, why error) {
	lk.mu.Lock()
	t := lk.turns[key]
	if t == nil {
		lk.mu.Unlock()
		return
	}
	lease := t.lease(id)
	if lease == nil && t.asking > 0 {
		if t.strays == nil {
			t.strays = make(map[string]error)
		}
		t.strays[id] = why
	}
	var lock *Lock
	if lease != nil {
		lease.spare = 0 // An Unlock that has begun must not hand the lease over.
		lock = lease.holder()
	}
	lk.mu.Unlock()
	if lock != nil {
		lock.lose(lossOf(why))
	}
}

// Unlock releases the lock. It takes no context, so a cancelled request still releases its
// lock. Unlock takes as long as the store needs to answer, at most about three seconds.
// After that the release goes on in the background, and the lock ends with its TTL at the
// latest.
//
// If the lock was lost before, Unlock returns an error that matches [ErrLost]: the work
// that the lock guarded may not have been alone. A second Unlock returns [ErrReleased] and
// changes nothing.
func (l *Lock) Unlock() error {
	if !l.released.CompareAndSwap(false, true) {
		return wrap("unlock", l.Key(), ErrReleased)
	}
	r := l.root()
	lk := r.lease.lk
	now := time.Now()
	lk.mu.Lock()
	r.entries--
	if r.entries > 0 {
		lk.mu.Unlock()
		return nil
	}
	if lk.closed {
		lk.mu.Unlock()
		return wrap("unlock", l.Key(), ErrClosed) // Close unlocks it
	}
	lk.busy.Add(1)
	defer lk.busy.Done()
	why := r.over(lk.clock.At(now))
	if r.end.Load() != nil || why != nil {
		lk.mu.Unlock()
		return wrap("unlock", l.Key(), r.unlockLost(why))
	}
	contexts := r.close(released)
	if contexts.last != nil { // end them before anyone else gets the key
		lk.mu.Unlock()
		contexts.end()
		lk.mu.Lock()
	}
	hook := lk.opts.Trace.Unlocked
	var e Event
	if hook != nil { // before the lease has a new holder
		e = r.event()
	}
	handed := lk.handOver(r, now)
	if !handed {
		lk.renewer.remove(r.lease)
	}
	lk.mu.Unlock()
	var err error
	if !handed {
		err = r.giveBack(now)
	}
	if hook != nil {
		e.Err = err
		hook(e)
	}
	return wrap("unlock", l.Key(), err)
}

// unlockLost is Unlock for a lost lock, perhaps lost just now.
func (l *Lock) unlockLost(why *LostError) error {
	if why != nil {
		l.lose(why)
	}
	// The holder has stopped, so the store need not wait for the TTL.
	l.lease.lk.cleaner.add(l.lease.released())
	return l.end.Load().err
}

// handOver hands the claim of an ended lock to the first waiter, if no request to the
// store is needed. Call handOver with Locker.mu held.
func (lk *Locker) handOver(from *Lock, now time.Time) bool {
	l := from.lease
	w := l.turn.line.first
	if w == nil || lk.closed || from.atLeast > 0 {
		return false
	}
	at := lk.clock.At(now)
	if !l.passable(at, w.terms) {
		return false
	}
	l.turn.line.remove(w)
	l.fence++
	l.spare--
	l.use(l.newLock(w.term, at))
	lk.renewer.see(l)
	w.call(l.lock, nil)
	return true
}

// giveBack settles the claim at the store and lets the first waiter contend.
func (l *Lock) giveBack(now time.Time) error {
	l.lease.awaitRound()
	err := l.lease.lk.settle(l, now)
	l.lease.lk.drop(l.lease)
	return err
}
