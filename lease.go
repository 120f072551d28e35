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

// A lease is a claim from the moment that it is asked for until the store has
// forgotten it. It outlives a Lock when the claim is handed to the next local
// waiter. Unless said otherwise, its fields are guarded by Locker.mu once it is
// admitted to its turn, and belong to the asking goroutine before.
type lease struct {
	lk      *Locker
	turn    *turn
	claims  [1]driver.Claim // an array, because stores take claims in slices
	noRenew bool

	asked   bool            // the store may know the claim
	unheard time.Duration   // since when the store has not answered; 0 if it has
	late    bool            // an Acquire was not answered, and may be on its way
	granted bool            // the store has granted it
	ttl     time.Duration   // as granted; 0: no end
	fence   uint64          // token of the present lock
	spare   int             // tokens left for hand-offs
	taken   time.Duration   // when the grant arrived
	ctx     context.Context // of the present lock's call, for the Trace; else nil

	// deadline is when the lock is lost if no renewal succeeds from now on,
	// by the Locker's clock; 0 if never. It can be read at any time.
	deadline atomic.Int64

	// The lock that uses the lease: weakly from its first renewal on, so that
	// the renewer notices a lock that was dropped, and the many that end sooner
	// pay nothing for that. Strongly before, and as long as somebody waits for
	// its end, who need not keep the lock itself.
	lock *Lock
	weak weak.Pointer[Lock]

	renewal

	// So that the first call of its kind needs no allocation.
	first, last   bounded.Context
	called, ended bool
}

func (l *lease) claim() *driver.Claim { return &l.claims[0] }

// newLease makes the lease of a claim that has not been asked for. Call it with
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

// rename makes it the lease of a new claim, because the store has told that the one
// that was asked for is over. That is released all the same: it may have been granted
// since by an Acquire that was on its way. Call it with Locker.mu held.
func (l *lease) rename() {
	delete(l.turn.strays, l.claim().ID)
	l.lk.cleaner.enqueue(l.released())
	l.claim().ID = l.lk.newID()
	l.asked, l.unheard, l.late = false, 0, false
}

// heard notes whether an Acquire that was sent then was answered.
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

// released is the claim as it is released.
func (l *lease) released() driver.Claim {
	c := *l.claim()
	c.Late = l.late
	return c
}

// silent reports whether the store has not answered for as long as it would keep a
// place in its queue for the claim.
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

// grant takes note of a grant that is here now and whose TTL counts from sent.
func (l *lease) grant(g driver.Grant, sent, now time.Duration) {
	l.granted = true
	l.fence, l.spare = g.Fence, max(g.Span-1, 0)
	l.ttl, l.taken = g.TTL, now
	if g.TTL < 0 {
		l.ttl = 1 // it ran out before it was here, by the clock of a store that was set
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

// margin is what is kept back from a TTL because clocks do not run at quite the
// same rate and timers are late.
func margin(ttl time.Duration) time.Duration { return max(ttl/100, 10*time.Millisecond) }

// remaining is the time until the deadline; false if there is none.
func (l *lease) remaining(now time.Duration) (time.Duration, bool) {
	d := time.Duration(l.deadline.Load())
	return d - now, d != 0
}

// holder returns the lock that uses the lease, nil if it was dropped.
func (l *lease) holder() *Lock {
	if l.lock != nil {
		return l.lock
	}
	return l.weak.Value()
}

// loosen lets the lock be collected if its owner drops it.
func (l *lease) loosen() {
	if l.lock == nil || l.lock.done != nil {
		return
	}
	l.lock.contexts.forgetEnded()
	if l.lock.contexts.last == nil {
		l.weak, l.lock = weak.Make(l.lock), nil
	}
}

// tighten takes it back, because somebody is going to wait for the lock's end.
func (l *lease) tighten(lock *Lock) {
	if l.holder() == lock {
		l.lock = lock
	}
}

// use makes lock the one that uses the lease.
func (l *lease) use(lock *Lock) { l.lock, l.weak = lock, weak.Pointer[Lock]{} }

// maxTurn is how long one claim may go from hand to hand in this process while
// others may be waiting for it.
const maxTurn = 20 * time.Millisecond

// serves reports whether the claim is an exclusive one on just these terms.
func (l *lease) serves(want terms) bool {
	c := l.claim()
	have := terms{weight: c.Weight, limit: c.Limit, ttl: c.TTL, noRenew: l.noRenew, note: c.Note}
	return c.Exclusive() && have == want
}

// passable reports whether the claim may be handed to a waiter who wants it on
// these terms. It has to be good for at least half of its TTL.
func (l *lease) passable(now time.Duration, want terms) bool {
	if l.noRenew || l.spare == 0 || now-l.taken >= maxTurn || !l.serves(want) {
		return false
	}
	left, ok := l.remaining(now)
	return !ok || left >= l.ttl/2
}
