package holdfast

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/bounded"
)

// A lease is a claim from its first request until the store has forgotten it. A lease
// outlives a Lock if the claim is handed over to the next local waiter. Unless noted
// otherwise, Locker.mu guards the fields once the lease is admitted to its turn; before,
// the fields belong to the requesting goroutine.
type lease struct {
	lk      *Locker
	turn    *turn
	claims  [1]driver.Claim // an array, because stores take claims in slices
	noRenew bool

	asked   bool            // the store may know the claim
	unheard time.Duration   // since when no Acquire was answered; 0 if the last one was
	late    bool            // an Acquire was not answered, and may still arrive
	granted bool            // the store has granted the claim
	ttl     time.Duration   // as granted; 0: no end
	fence   uint64          // token of the present lock
	spare   int             // tokens left for hand-offs
	taken   time.Duration   // when the grant arrived
	stuck   bool            // it is logged that a call of this Locker waits for the present lock
	ctx     context.Context // of the present lock's call, for the Trace; else nil

	// deadline is when the lock is lost if no renewal succeeds from now on, by the
	// Locker's clock; 0 if never. Reading deadline needs no mutex.
	deadline atomic.Int64

	// The lock that uses the lease. The pointer is weak from the first renewal on, so that
	// the renewer notices a dropped lock; the many locks that end sooner pay nothing for
	// that. The pointer is strong before, and as long as somebody waits for the end of the
	// lock, who need not keep the lock itself.
	lock *Lock
	weak weak.Pointer[Lock]

	renewal

	// The contexts of the first Acquire and the first release, which so need no allocation.
	first, last   bounded.Context
	called, ended bool
}

func (l *lease) claim() *driver.Claim { return &l.claims[0] }

// newLease makes the lease of a claim before the first request. Call newLease with
// Locker.mu held.
func (lk *Locker) newLease(t *turn, want terms) *lease {
	return &lease{
		lk:      lk,
		turn:    t,
		noRenew: want.noRenew,
		claims: [1]driver.Claim{{
			Key:    t.key,
			ID:     lk.newID(),
			Weight: want.weight,
			Limit:  want.limit,
			TTL:    want.ttl,
			Span:   1,
			Owner:  lk.opts.Owner,
			Note:   want.note,
		}},
	}
}

// rename gives the lease a new claim, because the store has reported the loss of the old
// one. The old claim is released all the same: an Acquire that was in flight may have been
// granted since. Call rename with Locker.mu held.
func (l *lease) rename() {
	delete(l.turn.strays, l.claim().ID)
	l.lk.cleaner.enqueue(l.released())
	l.claim().ID = l.lk.newID()
	l.asked, l.unheard, l.late = false, 0, false
}

// heard notes whether an Acquire sent at that time was answered.
func (l *lease) heard(sent time.Duration, err error) {
	switch {
	case err == nil:
		l.unheard = 0
	case l.unheard == 0:
		l.unheard = max(sent, 1)
	}
	if !errors.Is(err, driver.ErrUnwritten) {
		l.asked, l.late = true, l.late || err != nil
	}
}

// released is the claim as Release wants it: with Late if an Acquire may still arrive.
func (l *lease) released() driver.Claim {
	c := *l.claim()
	c.Late = l.late
	return c
}

// silent reports whether the store has not answered for longer than the claim keeps a
// place in the store's queue.
func (l *lease) silent(now time.Duration) bool {
	return l.unheard > 0 && now-l.unheard > l.claim().Alive()
}

// call returns the context of one Acquire.
func (l *lease) call(parent context.Context, limit time.Time) *bounded.Context {
	if l.called {
		return new(bounded.Context).Start(parent, limit)
	}
	l.called = true
	return l.first.Start(parent, limit)
}

// grant records a grant that has just arrived; its TTL counts from sent.
func (l *lease) grant(g driver.Grant, sent, now time.Duration) {
	l.granted = true
	l.fence, l.spare = g.Fence, max(g.Span-1, 0)
	l.ttl, l.taken = g.TTL, now
	if g.TTL < 0 {
		l.ttl = 1 // expired before it arrived, because the store's clock was set
	}
	l.extend(sent)
}

// extend lets the lease stand for its TTL from sent.
func (l *lease) extend(sent time.Duration) {
	if l.ttl == 0 {
		l.due = sent + l.claim().TTL // nothing to renew, but the lock may be dropped
		return
	}
	l.deadline.Store(int64(sent + l.ttl - margin(l.ttl)))
	l.due = sent + l.ttl/3 - l.ttl/30 + rand.N(max(l.ttl/15, 1))
	l.open = l.due - l.ttl/10
	l.risk = sent + l.ttl/2
	l.backoff, l.failure = 0, nil
}

// margin is kept back from a TTL, because clocks run at slightly different rates and
// timers are late.
func margin(ttl time.Duration) time.Duration { return max(ttl/100, 10*time.Millisecond) }

// remaining is the time until the deadline; false if the lease has no deadline.
func (l *lease) remaining(now time.Duration) (time.Duration, bool) {
	d := time.Duration(l.deadline.Load())
	return d - now, d != 0
}

// holder returns the lock that uses the lease, nil if the lock was dropped.
func (l *lease) holder() *Lock {
	if l.lock != nil {
		return l.lock
	}
	return l.weak.Value()
}

// loosen allows garbage collection of a lock that its owner drops.
func (l *lease) loosen() {
	if l.lock == nil || l.lock.done != nil {
		return
	}
	l.lock.contexts.forgetEnded()
	if l.lock.contexts.last == nil {
		l.weak, l.lock = weak.Make(l.lock), nil
	}
}

// tighten reverts loosen, because somebody is going to wait for the end of the lock.
func (l *lease) tighten(lock *Lock) {
	if l.holder() == lock {
		l.lock = lock
	}
}

// began is when the present lock was granted.
func (l *lease) began() time.Duration {
	if lock := l.holder(); lock != nil {
		return lock.since
	}
	return l.taken
}

// use makes lock the user of the lease.
func (l *lease) use(lock *Lock) { l.lock, l.weak, l.stuck = lock, weak.Pointer[Lock]{}, false }

// maxTurn is how long the process may hand one claim over from lock to lock while other
// processes may be waiting for the key.
const maxTurn = 20 * time.Millisecond

// serves reports whether the claim is exclusive and has exactly the wanted terms.
func (l *lease) serves(want terms) bool {
	c := l.claim()
	have := terms{weight: c.Weight, limit: c.Limit, ttl: c.TTL, noRenew: l.noRenew, note: c.Note}
	return c.Exclusive() && have == want
}

// passable reports whether the claim may be handed over to a waiter that wants these terms.
// The claim must be valid for at least another half of its TTL.
func (l *lease) passable(now time.Duration, want terms) bool {
	if l.noRenew || l.spare == 0 || now-l.taken >= maxTurn || !l.serves(want) {
		return false
	}
	left, ok := l.remaining(now)
	return !ok || left >= l.ttl/2
}
