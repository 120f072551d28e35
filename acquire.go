package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// Lock acquires the lock on key, and waits for it until ctx ends. The key is any UTF-8 of
// 1 to 512 bytes, prefix included.
//
// Waiters acquire the lock in FIFO order if the store queues waiters. Memcached and the
// sessions of MySQL and MariaDB (mode=session) have no queue. With these stores, a
// process may acquire a lock again and again for a tenth of a second while others wait.
// Then the process backs off for up to half a second, and the first process to ask gets
// the lock.
//
// If ctx ends the wait, the error matches both [ErrHeld] and the error of ctx. If [Wait]
// or [Retry] ends the wait, the error matches ErrHeld alone. If an operator breaks the
// waiter's place in the queue (see [Locker.Break]), the error matches [ErrLost]. If ctx
// carries a lock on the same key (see [Lock.Context]), Lock returns [ErrDeadlock], or
// enters the lock again with [Reenter].
//
// While it waits, Lock tolerates a failing store for up to the TTL; if the store has never
// answered, for up to three seconds or the TTL, whichever is shorter. If ctx ends before
// then, the error also shows and wraps the last error of the store.
//
// A failed call leaves nothing behind: what it may have left in the store goes to the next
// waiter of this process, or is released in the background.
func (lk *Locker) Lock(ctx context.Context, key string, opts ...LockOption) (*Lock, error) {
	s, err := lk.settings(opts)
	if err != nil {
		return nil, wrap("lock", key, err)
	}
	lock, err := lk.lock(ctx, key, s)
	return lock, wrap("lock", key, err)
}

// TryLock acquires the lock on key at once, or returns an error that matches [ErrHeld]: a
// [*HeldError] that names the holder. TryLock does not overtake waiters. If this process
// holds the key, TryLock fails without a request to the store.
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
			return nil, cutShort(cut, err, nil)
		}
	}
}

// cutShort is the error of a wait that cause ended. It matches cause, held, and failure:
// the last failure of the store, which may be nil.
func cutShort(cause, held, failure error) error {
	if failure == nil {
		return fmt.Errorf("%w while %w", cause, held)
	}
	return silence.Cut(fmt.Errorf("%w while %w", cause, held), failure)
}

// sleep returns why the sleep was cut short, nil after a full sleep.
func (lk *Locker) sleep(ctx context.Context, d time.Duration) error {
	timer := lk.clock.NewTimer(d)
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
	lease     *lease // the requested lease
	contender bool   // waits at the store for the whole queue
	waiter    *waiter

	began    time.Duration
	answered time.Duration // when the last answered Acquire was sent, or the first; never before
	refusal  *HeldError    // nil until refused
	failure  error         // of the last Acquire; nil if the store answered
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

// enter decides whether the call may ask the store at once, as the contender or beside
// the contender, or joins the queue.
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

// span is how many tokens a grant should carry: more than one only if somebody waits in
// the queue, since every token costs the store's clock a microsecond.
func (a *attempt) span() int {
	if a.exclusive() && !a.noRenew && a.turn.line.len > 0 {
		return driver.MaxSpan
	}
	return 1
}

// ask asks the store once, beside the contender if there is one. If the call may wait and
// is refused, it joins the queue.
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

// refused ends a single try; a call that may wait joins the queue.
func (a *attempt) refused(g driver.Grant, err error) error {
	if err != nil && (a.try || errors.Is(err, driver.ErrInvalid) || silence.Ended(a.ctx) != nil) {
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

// acquire sends one Acquire and records the answer.
func (a *attempt) acquire(wait bool) (driver.Grant, time.Duration, error) {
	now := time.Now()
	sent := a.lk.clock.At(now)
	limit := callLimit(a.ttl)
	if wait {
		limit = a.limit(sent)
	}
	call := a.lease.call(a.ctx, now.Add(limit))
	defer call.End()
	a.lease.claim().Wait = wait
	if a.answered == never {
		a.answered = sent
	}
	g, err := a.lk.store.Acquire(call, *a.lease.claim())
	a.lease.heard(sent, err)
	if err != nil {
		err = a.failed(err)
	} else {
		a.failure = nil
	}
	if !g.OK {
		a.tried(g, err)
	}
	return g, sent, err
}

// limit is how long one call to the store may take, from now, if the attempt may wait.
func (a *attempt) limit(now time.Duration) time.Duration {
	if !a.limited {
		return callLimit(a.ttl)
	}
	return max(min(callLimit(a.ttl), a.began+a.wait-now), 0)
}

// failed records the error of an Acquire, and returns the error for the caller. If the
// caller has cut the call short, by the context or by Wait, the store's previous answer
// says more about the store than this error. So failed then records this error only if it
// says more than that the call was cut short.
func (a *attempt) failed(err error) error {
	now, ended := a.lk.now(), silence.Ended(a.ctx)
	known := a.failure != nil || a.refusal != nil
	short := ended != nil || known && a.limited && now >= a.began+a.wait
	if !short || silence.Words(err) != "" {
		a.failure = silence.Of(err, now-a.answered)
	}
	if ended == nil || errors.Is(err, driver.ErrInvalid) {
		return a.failure
	}
	return silence.Cut(ended, a.failure)
}

// take makes a lock of a grant. It returns neither lock nor error if the grant is too old
// or already lost: then the attempt must ask again.
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

// least is the validity that a caller must find in a new lock: half of the TTL. A pushed
// grant is short until it is confirmed, so a second is enough.
func (a *attempt) least(g driver.Grant) time.Duration {
	if g.TTL < a.ttl {
		return min(a.ttl/2, time.Second)
	}
	return g.TTL / 2
}

// admit adds the granted claim to the claims that hold. It reports false if the claim is
// lost already, and false with [ErrClosed] if the Locker was closed.
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
		t.retire()
		lk.pump(t)
	}
	return true, nil
}

// leave ends the attempt's request and lets the next waiter try.
func (a *attempt) leave() {
	a.lk.mu.Lock()
	defer a.lk.mu.Unlock()
	a.turn.end(a.terms)
	if a.contender {
		a.turn.retire()
	}
	a.lk.pump(a.turn)
}

// discard releases, in the background, what the store may keep of the claim. A single try
// that was answered with a refusal has left nothing.
func (a *attempt) discard() {
	if a.lease.asked && (a.lease.late || a.contender || a.lease.granted) {
		a.lk.cleaner.add(a.lease.released())
	}
}

// spread is more jitter, for calls that wait for the same thing. Calls that began together
// would otherwise retry together, all but one in vain.
func spread(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/2+1))
}

// jitter spreads d over 80 to 100 per cent of d.
func jitter(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)/5+1))
}
