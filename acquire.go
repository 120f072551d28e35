package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Lock takes the lock on key and waits for it until ctx ends. The key is any
// UTF-8 of 1 to 512 bytes, prefix included.
//
// A wait that is cut short returns an error that matches both [ErrHeld] and the
// error of ctx; with [Wait] and [Retry], ErrHeld alone once they give up. While
// it waits, Lock rides out a store that fails for up to the TTL; if the store
// has never answered, for up to three seconds of it. If an operator breaks its place in
// line (see [Locker.Break]), the error matches [ErrLost]. A context that carries
// a lock on the same key (see [Lock.Context]) gets [ErrDeadlock], or enters it
// again with [Reenter].
//
// A call that fails leaves nothing behind: what it may have left in the store goes to
// the next in line of this process, or is released in the background.
func (lk *Locker) Lock(ctx context.Context, key string, opts ...LockOption) (*Lock, error) {
	s, err := lk.settings(opts)
	if err != nil {
		return nil, wrap("lock", key, err)
	}
	lock, err := lk.lock(ctx, key, s)
	return lock, wrap("lock", key, err)
}

// TryLock takes the lock on key at once, or returns an error that matches
// [ErrHeld], as a [*HeldError] that says by whom. It does not overtake those
// who wait. If this process holds the key it is refused without asking the
// store.
func (lk *Locker) TryLock(ctx context.Context, key string, opts ...LockOption) (*Lock, error) {
	s, err := lk.settings(opts)
	if err == nil && (s.tries > 0 || s.limited && s.wait > 0) {
		err = invalid(ErrInvalid, errors.New("TryLock does not wait: use Lock with Wait or Retry"))
	}
	if err != nil {
		return nil, wrap("trylock", key, err)
	}
	s.wait, s.limited = 0, true
	lock, err := lk.lock(ctx, key, s)
	return lock, wrap("trylock", key, err)
}

func (lk *Locker) lock(ctx context.Context, key string, s settings) (*Lock, error) {
	stored, err := lk.storedKey(key)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if lock, err := lk.enterAgain(ctx, stored, s); lock != nil || err != nil {
		return lock, err
	}
	a := attempt{lk: lk, ctx: ctx, key: stored, settings: s, answered: never, try: s.tries > 0 || s.limited && s.wait == 0}
	if s.limited || lk.opts.Trace.timed() {
		a.began = lk.now()
	}
	if lk.opts.Trace.lasts() {
		a.term.ctx = ctx
	}
	a.wanted()
	lock, err := a.repeat()
	if err != nil {
		a.gaveUp(err)
	}
	return lock, err
}

// repeat makes the tries of a call: one, unless there is a Retry.
func (a *attempt) repeat() (*Lock, error) {
	if a.tries == 0 {
		return a.run()
	}
	for n := 1; ; n++ {
		try := *a
		lock, err := try.run()
		if n == a.tries || !errors.Is(err, ErrHeld) {
			return lock, err
		}
		if cut := a.lk.sleep(a.ctx, a.every); cut != nil {
			return nil, cutShort(cut, err)
		}
	}
}

// cutShort is the error of a wait that cause ended: it matches both.
func cutShort(cause, held error) error {
	return fmt.Errorf("%w while %w", cause, held)
}

// sleep returns why it was cut short, nil if it was not.
func (lk *Locker) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-lk.closing:
		return ErrClosed
	}
}

// An attempt is one call of Lock or TryLock on its way to a lease.
type attempt struct {
	settings
	lk  *Locker
	ctx context.Context
	key string // as stored
	try bool   // do not wait

	turn      *turn
	lease     *lease // what is asked for
	contender bool   // it waits at the store for the whole line
	waiter    *waiter

	began    time.Duration
	answered time.Duration // when the last Acquire that was answered was sent, or the first; never before
	refusal  *HeldError    // nil until refused
}

func (a *attempt) run() (*Lock, error) {
	if err := a.enter(); err != nil {
		return nil, err
	}
	defer a.lk.busy.Done()
	var lock *Lock
	var err error
	for lock == nil && err == nil {
		switch {
		case a.waiter != nil:
			lock, err = a.stand()
		case a.contender:
			lock, err = a.contend()
		default:
			lock, err = a.ask()
		}
	}
	if lock != nil {
		lock.locked(a.began)
	}
	return lock, err
}

// enter decides whether the call may ask the store at once, as the contender or
// beside it, or stands in line.
func (a *attempt) enter() error {
	lk := a.lk
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.closed {
		return ErrClosed
	}
	t := lk.turn(a.key)
	a.turn = t
	alone := t.line.first == nil
	switch {
	case a.try && (!alone || t.waiting || !t.fits(a.terms)):
		return lk.heldHere(t)
	case !a.try && alone && !t.contending && !t.taken():
		a.contender, t.contending = true, true
	case !alone || t.waiting || !t.fits(a.terms):
		a.queue()
	}
	if a.waiter == nil {
		t.begin(a.terms)
		a.lease = lk.newLease(t, a.terms)
	}
	lk.busy.Add(1)
	return nil
}

// span is how many tokens a grant should carry: more than one only if somebody
// stands in line, since each costs the store's clock a microsecond.
func (a *attempt) span() int {
	if a.exclusive() && !a.noRenew && a.turn.line.len > 0 {
		return driver.MaxSpan
	}
	return 1
}

// ask asks the store once, beside the contender if there is one. A call that
// would wait and is refused goes to the line.
func (a *attempt) ask() (*Lock, error) {
	for range maxLate {
		g, sent, err := a.acquire(false)
		if err == nil && g.OK {
			if lock, err := a.take(g, sent); lock != nil || err != nil {
				return lock, err
			}
			continue
		}
		return nil, a.refused(g, err)
	}
	a.leave()
	a.discard()
	return nil, fmt.Errorf("the store's answers came too late for a TTL of %v", a.ttl)
}

// maxLate is how many grants in a row may come too late to be of use.
const maxLate = 3

// refused ends a single try, or sends a call that may wait to the line.
func (a *attempt) refused(g driver.Grant, err error) error {
	if err != nil && (a.try || errors.Is(err, driver.ErrInvalid) || a.ctx.Err() != nil) {
		a.leave()
		a.discard()
		return err
	}
	if a.try {
		a.leave()
		return heldError(g)
	}
	a.discard()
	a.lk.mu.Lock()
	defer a.lk.mu.Unlock()
	a.turn.end(a.terms)
	a.lease = nil
	a.queue()
	a.lk.pump(a.turn)
	return nil
}

// acquire sends one Acquire and keeps the books about its answer.
func (a *attempt) acquire(wait bool) (driver.Grant, time.Duration, error) {
	now := time.Now()
	sent := a.lk.clock.At(now)
	limit := callLimit(a.ttl)
	if wait && a.limited {
		limit = max(min(limit, a.began+a.wait-sent), 0)
	}
	call := a.lease.call(a.ctx, now.Add(limit))
	defer call.End()
	a.lease.claim().Wait = wait
	if a.answered == never {
		a.answered = sent
	}
	g, err := a.lk.store.Acquire(call, *a.lease.claim())
	a.lease.heard(sent, err)
	if !g.OK {
		a.tried(g, err)
	}
	return g, sent, err
}

// take makes a lock of a grant. It returns neither lock nor error if the grant
// is of no use and has to be asked for again: too old, or lost already.
func (a *attempt) take(g driver.Grant, sent time.Duration) (*Lock, error) {
	l := a.lease
	now := a.lk.now()
	l.grant(g, sent, now)
	if left, ok := l.remaining(now); ok && left < a.least(g) {
		return nil, nil
	}
	if a.fenced && g.Fence == 0 {
		a.leave()
		a.discard()
		return nil, ErrNotFenced
	}
	lock := l.newLock(a.term, now)
	if done, err := a.admit(lock); !done {
		return nil, err
	}
	return lock, nil
}

// least is how much validity a caller must find when it gets its lock: half of
// the TTL; of a pushed grant, which is short until it is confirmed, a second
// will do.
func (a *attempt) least(g driver.Grant) time.Duration {
	if g.TTL < a.ttl {
		return min(a.ttl/2, time.Second)
	}
	return g.TTL / 2
}

// admit makes the granted claim one of those that hold.
func (a *attempt) admit(lock *Lock) (bool, error) {
	lk, t, l := a.lk, a.turn, a.lease
	lk.mu.Lock()
	if _, lost := t.strays[l.claim().ID]; lost {
		l.rename()
		lk.mu.Unlock()
		return false, nil
	}
	if lk.closed {
		lk.mu.Unlock()
		a.leave()
		a.discard()
		return false, ErrClosed
	}
	defer lk.mu.Unlock()
	t.end(a.terms)
	t.admit(l)
	l.lock = lock
	lk.renewer.add(l)
	if a.contender {
		t.contending, t.waiting = false, false
		lk.pump(t)
	}
	return true, nil
}

// leave gives up the place among those that ask, and lets the next one in line
// try.
func (a *attempt) leave() {
	a.lk.mu.Lock()
	defer a.lk.mu.Unlock()
	a.turn.end(a.terms)
	if a.contender {
		a.turn.contending, a.turn.waiting = false, false
	}
	a.lk.pump(a.turn)
}

// discard releases, in the background, what the store may keep of the claim. A
// single try that was answered with no left nothing.
func (a *attempt) discard() {
	if a.lease.asked && (a.lease.late || a.contender || a.lease.granted) {
		a.lk.cleaner.add(a.lease.released())
	}
}

// spread is more jitter, for those who wait for the same thing: if they began
// together they would all ask again together, and all but one in vain.
func spread(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}

// jitter spreads d over 80 to 100 per cent of it.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/5+1))
}
