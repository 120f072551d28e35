package holdfast

import (
	"context"
	"fmt"
)

// Context returns a copy of parent that carries the lock and ends with it: its
// cause is then [Lock.Err]. Pass it to the work that the lock guards.
func (l *Lock) Context(parent context.Context) context.Context {
	r := l.root()
	lk := r.lease.lk
	ctx, cancel := context.WithCancelCause(parent)
	r.attach(ctx, &cancel)
	ctx = context.WithValue(ctx, lk, &carried{r, carriedBy(parent, lk)})
	return context.WithValue(ctx, current{}, l)
}

// attach ends a context with the lock, and forgets it when it ends before.
func (l *Lock) attach(ctx context.Context, cancel *context.CancelCauseFunc) {
	lk := l.lease.lk
	lk.mu.Lock()
	e := l.end.Load()
	if e == nil {
		if l.contexts == nil {
			l.contexts = make(map[*context.CancelCauseFunc]struct{})
		}
		l.contexts[cancel] = struct{}{}
		l.lease.tighten(l)
	}
	lk.mu.Unlock()
	if e != nil {
		(*cancel)(wrap("hold", l.Key(), e.err))
		return
	}
	context.AfterFunc(ctx, func() {
		lk.mu.Lock()
		defer lk.mu.Unlock()
		delete(l.contexts, cancel)
	})
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
