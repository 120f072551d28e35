package holdfast

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/carried"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Context returns a copy of parent that carries the lock and ends with it: at a loss, before a
// second holder can have the key, and at the Unlock. The cause of the context is then
// [Lock.Err]. Pass the context to the work that the lock guards.
//
// If parent ends, the context ends, too, and the lock stays held until Unlock. Calls with the
// context find the lock by [FromContext], and may enter it again with [Reenter].
func (l *Lock) Context(parent context.Context) context.Context {
	h := &holding{lock: l, outer: carriedBy(parent, l.locker)}
	h.Cause = (*cause)(h)
	h.Context, h.Cancel = context.WithCancelCause(parent)
	l.hold.Attach(&h.Bond)
	return h
}

// A holding is a context made by a lock. A holding stores everything the context carries
// in one value.
type holding struct {
	engine.Bond
	lock  *Lock    // the handle, not its root
	outer *holding // with the next lock of the same Locker in the context
}

// Value finds the innermost lock of the context, and the innermost lock of every Locker.
// The Locker itself is the key.
func (h *holding) Value(key any) any {
	switch key {
	case carried.Innermost{}:
		return h.lock
	case h.lock.locker:
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
	return &Error{"hold", c.lock.Key(), c.lock.hold.Ended()}
}

// FromContext returns the innermost lock that ctx carries (see [Lock.Context]), regardless of
// the Locker. Code deep below a Lock reads the fencing token there. The lock may be lost or
// unlocked by now: [Lock.Err] says so. ok is false if ctx carries no lock.
func FromContext(ctx context.Context) (lock *Lock, ok bool) {
	lock, ok = ctx.Value(carried.Innermost{}).(*Lock)
	return lock, ok
}

func carriedBy(ctx context.Context, lk *Locker) *holding {
	h, _ := ctx.Value(lk).(*holding)
	return h
}
