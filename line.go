package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/silence"
)

// A line is a FIFO queue of waiters.
type line struct {
	first, last *waiter
	len         int32
}

// A waiter queues until it is called. The fields closed, lock and claim then hold what it
// has received.
type waiter struct {
	terms
	term // of the lock that may be handed over

	ready  chan struct{} // one place, so that calling never blocks
	called bool
	closed bool   // the Locker was closed
	lock   *Lock  // handed over; if nil, the waiter contends
	claim  *lease // inherited from the previous contender, to ask for again

	stuck chan struct{} // one place: the lock has been held for so long that it is to be logged

	prev, next *waiter
}

func (w *waiter) call(lock *Lock, claim *lease) {
	w.called, w.lock, w.claim = true, lock, claim
	w.ready <- struct{}{}
}

// waiter returns a waiter, reused if possible.
func (lk *Locker) waiter(want terms, held term) *waiter {
	w, _ := lk.waiters.Get().(*waiter)
	if w == nil {
		w = &waiter{ready: make(chan struct{}, 1), stuck: make(chan struct{}, 1)}
	}
	select {
	case <-w.stuck: // of the wait before
	default:
	}
	*w = waiter{terms: want, term: held, ready: w.ready, stuck: w.stuck}
	return w
}

func (q *line) push(w *waiter) {
	w.prev = q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.len++
}

func (q *line) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.len--
}

// queue puts the call at the end of the queue.
func (a *attempt) queue() {
	a.waiter = a.lk.waiter(a.terms, a.term)
	a.turn.line.push(a.waiter)
}

// stand waits in the queue. stand returns a lock that was handed over, an error, or
// neither when the call has become the contender.
func (a *attempt) stand() (*Lock, error) {
	w := a.waiter
	if err := a.await(w); err != nil {
		return nil, err
	}
	a.waiter = nil
	lock, claim, closed := w.lock, w.claim, w.closed
	w.ctx = nil
	a.lk.waiters.Put(w)
	switch {
	case closed:
		return nil, ErrClosed
	case lock != nil && lock.Err() == nil:
		return lock, nil
	case lock != nil: // the process was paused for longer than the lock lasts
		lock.locked(a.began)
		_ = lock.Unlock()
		a.wanted()
		return nil, a.rejoin()
	}
	a.contender, a.answered = true, a.lk.now()
	a.lease = claim
	a.lk.mu.Lock()
	defer a.lk.mu.Unlock()
	if a.lease == nil {
		a.lease = a.lk.newLease(a.turn, a.terms)
	} else if _, lost := a.turn.strays[claim.claim().ID]; lost {
		a.lease.rename()
	}
	a.lease.claim().Span = a.span()
	return nil, nil
}

// rejoin puts the call back into the queue, at the end.
func (a *attempt) rejoin() error {
	a.lk.mu.Lock()
	defer a.lk.mu.Unlock()
	if a.lk.closed {
		return ErrClosed
	}
	a.turn = a.lk.turn(a.key)
	a.queue()
	a.lk.pump(a.turn)
	return nil
}

// await returns nil when the waiter has been called, and otherwise why the waiter has
// left the queue.
func (a *attempt) await(w *waiter) error {
	var cut error
	var limit <-chan time.Time
	if a.limited {
		timer := a.lk.clock.NewTimer(a.began + a.wait - a.lk.now())
		defer timer.Stop()
		limit = timer.C
	}
	for over := false; !over; {
		select {
		case <-w.ready:
			return nil
		case <-w.stuck:
			a.stuck()
			continue
		case <-a.ctx.Done():
			cut = a.ctx.Err()
		case <-limit:
		}
		over = true
	}
	a.lk.mu.Lock()
	defer a.lk.mu.Unlock()
	if w.called { // just now
		<-w.ready
		return nil
	}
	held, failure := a.lk.heldHere(a.turn), a.turn.failure
	unknown := failure != nil && len(a.turn.leases) == 0 && !a.turn.waiting // who holds the key
	a.turn.line.remove(w)
	a.lk.tidy(a.turn)
	switch {
	case cut != nil && unknown:
		return silence.Cut(cut, failure)
	case cut != nil:
		return cutShort(cut, held, failure)
	case unknown:
		return failure
	}
	return held
}
