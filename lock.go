package holdfast

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A Lock is held until Unlock, or until it is lost. It is renewed in the
// background. All its methods may be called from many goroutines.
//
// A Lock that is garbage-collected without Unlock, while nobody waits for its
// Done or has a context of it, is logged and no longer renewed.
type Lock struct {
	lease *lease
	outer *Lock // of a lock that was entered again: the state is there

	fence   uint64
	since   time.Duration
	until   time.Duration // end of MaxHold; 0: none
	atLeast time.Duration

	end      atomic.Pointer[ending] // nil while it is held
	released atomic.Bool            // Unlock was called on this handle

	// Guarded by Locker.mu.
	entries  int32 // handles that have not been unlocked
	done     chan struct{}
	contexts holdings
	first    holding // of them, with a nil Context until it is used
}

// An ending is why a lock is no longer held.
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

// ID returns the public id of the lock's claim, under which Holders shows it
// and Break takes it.
func (l *Lock) ID() string { return driver.PublicID(l.lease.claim().ID) }

// Fence returns the fencing token, which is larger than that of every earlier
// holder of the key; readers of one read phase share one. Give it to what the
// lock guards, and let that refuse smaller tokens: it is the only protection
// that also holds when this process is paused for longer than the lease.
//
// Fence returns 0 if the store has no tokens, and once the lock has ended: it
// reads the clock, so a process that wakes from a pause does not use an old
// token without having kept it.
func (l *Lock) Fence() uint64 {
	if l.Err() != nil {
		return 0
	}
	return l.root().fence
}

// Deadline returns when the lock is lost if no renewal succeeds from now on;
// false if it has no end of its own. It moves with every renewal.
func (l *Lock) Deadline() (time.Time, bool) {
	left, ok := l.lease.remaining(l.lease.lk.now())
	if !ok {
		return time.Time{}, false
	}
	return time.Now().Add(left), true
}

// Err returns nil while the lock is held. After a loss it matches [ErrLost], as
// a [*LostError]; after Unlock it is [ErrReleased], or still the loss; after
// Close it is [ErrClosed]. It reads the clock, so a process that wakes from a
// pause or a suspend learns at once.
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

// check loses the lock if its time is over.
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

// over says why the lock's time is over, nil if it is not. Call it with
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

// Done returns a channel that is closed when the lock ends: by Unlock, or by
// its loss, and then before anyone else can hold the key. A lock that was
// entered again ends with the outermost.
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

// finish ends the lock for its holder, once. It reports whether it was the call
// that did.
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

// close ends a lock that has not ended, and returns the contexts to cancel once
// Locker.mu, which must be held, is free.
func (l *Lock) close(e *ending) holdings {
	l.end.Store(e)
	if l.done != nil {
		close(l.done)
	}
	contexts := l.contexts
	l.contexts = holdings{}
	return contexts
}

// lose ends the lock without its holder's doing. The holder is told first; then
// others of this process may ask for the key. The store is not: it counts the
// same lease, and the time until that ends is the holder's to stop in.
func (l *Lock) lose(why *LostError) {
	if !l.finish(&ending{why}) {
		return
	}
	lease, lk := l.lease, l.lease.lk
	lk.drop(lease)
	e := l.event()
	e.Err = why
	emit(lk.opts.Trace.Lost, e)
	lk.log().Warn("lock is lost", "key", e.Key, "fence", e.Fence, "reason", string(why.Reason), "error", why.Err)
}

// dropped tells, once, that the holder of a lease is gone without an Unlock. What it
// did may go on: the key stays taken until the TTL is over.
func (l *lease) dropped() {
	lk := l.lk
	if !lk.drop(l) {
		return
	}
	e := l.event(l.taken)
	e.Err = &LostError{Reason: LossDropped}
	lk.log().Error("lock was dropped without Unlock and is no longer renewed", "key", e.Key, "fence", e.Fence)
	emit(lk.opts.Trace.Lost, e)
}

// drop forgets a lease and lets the next in line contend. It reports whether it was
// the call that did.
func (lk *Locker) drop(l *lease) bool {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	first := l.turn.dismiss(l)
	if first {
		lk.pump(l.turn)
	}
	return first
}

// notified is told by the store of a loss.
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
		lease.spare = 0 // An Unlock that has begun must not hand it over.
		lock = lease.holder()
	}
	lk.mu.Unlock()
	if lock != nil {
		lock.lose(lossOf(why))
	}
}

// Unlock gives the lock back. It takes no context: a cancelled request still
// returns its lock. It takes as long as the store needs to answer, at most
// about three seconds; after that the release goes on in the background, and the
// lock ends with its TTL at the latest.
//
// It returns an error that matches [ErrLost] if the lock was lost before: then
// the work that it guarded may not have been alone. A second Unlock returns
// [ErrReleased] and changes nothing.
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
	if contexts.last != nil { // they end before anyone else gets the key
		lk.mu.Unlock()
		contexts.end()
		lk.mu.Lock()
	}
	hook := lk.opts.Trace.Unlocked
	var e Event
	if hook != nil { // before the lease is another's
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

// unlockLost is Unlock for a lock that is lost, perhaps just now.
func (l *Lock) unlockLost(why *LostError) error {
	if why != nil {
		l.lose(why)
	}
	// The holder has stopped, so the store need not wait for the TTL.
	l.lease.lk.cleaner.add(l.lease.released())
	return l.end.Load().err
}

// handOver gives the claim of a lock that has ended to the first in line, if it
// can be done without the store. Call it with Locker.mu held.
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

// giveBack lets the store have the claim, and the next in line contend for it.
func (l *Lock) giveBack(now time.Time) error {
	l.lease.awaitRound()
	err := l.lease.lk.settle(l, now)
	l.lease.lk.drop(l.lease)
	return err
}
