package holdfast

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/carried"
)

// Context returns a copy of parent that carries the lock and ends with it. The cause of
// the context is then [Lock.Err]. Pass the context to the work that the lock guards.
func (l *Lock) Context(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	return l.root().attach(holding{Context: ctx, cancel: cancel, lock: l, outer: carriedBy(parent, l.lease.lk)})
}

// A holding is a context made by a lock. A holding stores everything the context carries
// in one value. The first holding is part of the lock, since requests are served under
// locks.
type holding struct {
	context.Context
	cancel context.CancelCauseFunc
	lock   *Lock    // the handle, not its root
	outer  *holding // with the next lock of the same Locker in the context
	next   *holding // of the same lock
}

// Value finds the innermost lock of the context, and the innermost lock of every Locker.
// The Locker itself is the key.
func (h *holding) Value(key any) any {
	switch key {
	case carried.Innermost{}:
		return h.lock
	case h.lock.lease.lk:
		return h
	}
	return h.Context.Value(key)
}

// String names the context in the manner of package context. Without String, printing a
// context would read a lock while others use the lock.
func (h *holding) String() string {
	return fmt.Sprintf("%v.WithLock(%q)", h.Context, h.lock.Key())
}

// A cause is the cause of a context ended by its lock. Most causes are never read, so the
// error is made on demand.
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

// holdings are the contexts of a lock. Contexts that ended before the lock are removed
// when more contexts are added, and when the lock is renewed. Removing costs less than
// watching every context.
type holdings struct {
	last  *holding // the newest; next leads to the first
	count int32
	most  int32 // count at which ended contexts are looked for
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

// FromContext returns the innermost lock that ctx carries (see [Lock.Context]).
func FromContext(ctx context.Context) (*Lock, bool) {
	l, ok := ctx.Value(carried.Innermost{}).(*Lock)
	return l, ok
}

func carriedBy(ctx context.Context, lk *Locker) *holding {
	h, _ := ctx.Value(lk).(*holding)
	return h
}

// enterAgain enters the live lock on the key that ctx carries, or returns an error if the
// call may not enter it. It returns neither lock nor error if ctx carries no such lock.
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
