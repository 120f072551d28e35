package holdfast

import (
	"context"
	"fmt"
)

// Context returns a copy of parent that carries the lock and ends with it: its
// cause is then [Lock.Err]. Pass it to the work that the lock guards.
func (l *Lock) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	return l.root().attach(holding{Context: ctx, cancel: cancel, lock: l, outer: carriedBy(parent, l.lease.lk)})
}

// A holding is a context that a lock has made. It is one value for all that the
// context carries, and the first is part of its lock, since requests are served
// under locks.
type holding struct {
	context.Context
	cancel context.CancelCauseFunc
	lock   *Lock    // the handle, not its root
	outer  *holding // with the next lock of the same Locker that the context carries
	next   *holding // of the same lock
}

// Value finds the innermost lock of all, and that of each Locker, which itself is
// the key.
func (h *holding) Value(key any) any {
	switch key {
	case current{}:
		return h.lock
	case h.lock.lease.lk:
		return h
	}
	return h.Context.Value(key)
}

// String names the context in the manner of package context. Without it, whoever
// prints a context would look into a lock that others use.
func (h *holding) String() string {
	return fmt.Sprintf("%v.WithLock(%q)", h.Context, h.lock.Key())
}

// A cause is that of a context that its lock has ended. Most are never asked
// for, so the error is made when they are.
type cause holding

func (c *cause) Error() string { return c.Unwrap().Error() }

func (c *cause) Unwrap() error {
	return &Error{"hold", c.lock.Key(), c.lock.root().end.Load().err}
}

// end cancels the context because its lock has ended.
func (h *holding) end() { h.cancel((*cause)(h)) }

// attach ends a context with the lock.
func (l *Lock) attach(made holding) context.Context {
	lk := l.lease.lk
	lk.mu.Lock()
	h := &l.first
	if h.Context != nil {
		h = new(holding)
	}
	*h = made
	live := l.end.Load() == nil
	if live {
		l.contexts.add(h)
		l.lease.tighten(l)
	}
	lk.mu.Unlock()
	if !live {
		h.end()
	}
	return h
}

// holdings are the contexts of a lock. Those that have ended before it are
// forgotten when there are more to come, and when the lock is renewed: that costs
// less than to watch each of them.
type holdings struct {
	last  *holding // and from it to the first
	count int32
	most  int32 // to keep before ended ones are looked for
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

func (hs holdings) end() {
	for h := hs.last; h != nil; h = h.next {
		h.end()
	}
}

// current is the context key of the innermost lock.
type current struct{}

// FromContext returns the innermost lock that ctx carries (see [Lock.Context]).
func FromContext(ctx context.Context) (*Lock, bool) {
	l, ok := ctx.Value(current{}).(*Lock)
	return l, ok
}

func carriedBy(ctx context.Context, lk *Locker) *holding {
	h, _ := ctx.Value(lk).(*holding)
	return h
}

// enterAgain enters a live lock on the key that ctx carries, or refuses. It
// returns neither lock nor error if ctx carries none.
func (lk *Locker) enterAgain(ctx context.Context, key string, s settings) (*Lock, error) {
	h := carriedBy(ctx, lk)
	for h != nil && h.lock.lease.claim().Key != key {
		h = h.outer
	}
	if h == nil {
		return nil, nil
	}
	lock := h.lock.root()
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
