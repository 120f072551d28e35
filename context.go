package holdfast

import (
	"context"
	"fmt"
)

// Context returns a copy of parent that carries the lock and ends with it: its
// cause is then [Lock.Err]. Pass it to the work that the lock guards.
func (l *Lock) Context(parent context.Context) context.Context {
	r := l.root()
	ctx, cancel := context.WithCancelCause(parent)
	return r.attach(holding{Context: ctx, cancel: cancel, entered: l, carried: carried{r, carriedBy(parent, r.lease.lk)}})
}

// A holding is a context that a lock has made. It is one value for all that the
// context carries, and the first is part of its lock, since requests are served
// under locks.
type holding struct {
	context.Context
	cancel  context.CancelCauseFunc
	entered *Lock // the handle
	carried carried
	cause   Error
	next    *holding
}

func (h *holding) Value(key any) any {
	switch key {
	case current{}:
		return h.entered
	case h.carried.lock.lease.lk:
		return &h.carried
	}
	return h.Context.Value(key)
}

// String names the context in the manner of package context. Without it, whoever
// prints a context would look into a lock that others use.
func (h *holding) String() string {
	return fmt.Sprintf("%v.WithLock(%q)", h.Context, h.entered.Key())
}

// end cancels the context because its lock has ended.
func (h *holding) end(e *ending) {
	h.cause = Error{"hold", h.carried.lock.Key(), e.err}
	h.cancel(&h.cause)
}

// attach ends a context with the lock.
func (l *Lock) attach(made holding) context.Context {
	lk := l.lease.lk
	lk.mu.Lock()
	h := &l.first
	if h.Context != nil {
		h = new(holding)
	}
	*h = made
	e := l.end.Load()
	if e == nil {
		l.contexts.add(h)
		l.lease.tighten(l)
	}
	lk.mu.Unlock()
	if e != nil {
		h.end(e)
	}
	return h
}

// holdings are the contexts of a lock. Those that have ended before it are
// forgotten when there are more to come, and when the lock is renewed: that costs
// less than to watch each of them.
type holdings struct {
	last  *holding // and from it to the first
	count int
	most  int // to keep before ended ones are looked for
}

func (hs *holdings) add(h *holding) {
	if hs.count >= hs.most {
		hs.forgetEnded()
		hs.most = 2*hs.count + 1
	}
	h.next, hs.last = hs.last, h
	hs.count++
}

func (hs *holdings) forgetEnded() {
	at := &hs.last
	for *at != nil {
		if (*at).Err() == nil {
			at = &(*at).next
			continue
		}
		*at = (*at).next
		hs.count--
	}
}

func (hs holdings) end(e *ending) {
	for h := hs.last; h != nil; h = h.next {
		h.end(e)
	}
}

// current is the context key of the innermost lock.
type current struct{}

// FromContext returns the innermost lock that ctx carries (see [Lock.Context]).
func FromContext(ctx context.Context) (*Lock, bool) {
	l, ok := ctx.Value(current{}).(*Lock)
	return l, ok
}

// carried lists the locks of one Locker that a context carries, innermost
// first. The Locker itself is the context key.
type carried struct {
	lock  *Lock
	outer *carried
}

func carriedBy(ctx context.Context, lk *Locker) *carried {
	c, _ := ctx.Value(lk).(*carried)
	return c
}

// enterAgain enters a live lock on the key that ctx carries, or refuses. It
// returns neither lock nor error if ctx carries none.
func (lk *Locker) enterAgain(ctx context.Context, key string, s settings) (*Lock, error) {
	c := carriedBy(ctx, lk)
	for c != nil && c.lock.lease.claim().Key != key {
		c = c.outer
	}
	if c == nil {
		return nil, nil
	}
	lock := c.lock
	lock.check()
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lock.end.Load() != nil {
		return nil, nil
	}
	switch {
	case !s.reenter:
		return nil, fmt.Errorf("%w: the context holds this lock already; Reenter would enter it again", ErrDeadlock)
	case s.weight > lock.lease.claim().Weight:
		return nil, fmt.Errorf("%w: the context holds this lock with less weight; unlock it first", ErrDeadlock)
	}
	lock.entries++
	return &Lock{lease: lock.lease, outer: lock}, nil
}
