// Package bounded limits calls in time.
//
// Its contexts are for short calls, with a limit that costs nothing unless the callee
// waits for it. context.WithTimeout allocates and starts a timer for every call. A store
// in memory never looks at either, and a lock on it is cheaper than the timer.
package bounded

import (
	"context"
	"sync/atomic"
	"time"
)

// A Context ends with its parent, at its limit, or at End. The zero value is ready for
// Start. Each Context serves a single call.
type Context struct {
	parent context.Context
	limit  time.Time
	armed  atomic.Pointer[armed] // made when a caller first waits
	polled atomic.Bool
	ended  atomic.Bool
}

// armed is the context with a timer.
type armed struct {
	context.Context
	cancel context.CancelFunc
}

var _ context.Context = (*Context)(nil)

// Start sets the parent and the limit and returns c.
func (c *Context) Start(parent context.Context, limit time.Time) *Context {
	c.parent, c.limit = parent, limit
	return c
}

// ByLimit reports whether ctx ends at its deadline or at End, and not before: ctx is a Context
// whose parent cannot be cancelled. A callee that keeps the deadline need not look at Done.
func ByLimit(ctx context.Context) bool {
	c, ok := ctx.(*Context)
	return ok && c.parent.Done() == nil
}

// End ends the context: the call is over. End of nil does nothing.
func (c *Context) End() {
	if c == nil {
		return
	}
	c.ended.Store(true)
	if a := c.armed.Load(); a != nil {
		a.cancel()
	}
}

// Deadline returns the earlier of the limit and the parent's deadline.
func (c *Context) Deadline() (time.Time, bool) {
	if d, ok := c.parent.Deadline(); ok && d.Before(c.limit) {
		return d, true
	}
	return c.limit, true
}

// Done returns a channel that is closed when the context ends.
func (c *Context) Done() <-chan struct{} { return c.arm().Done() }

// Err says why the context has ended, nil if the context goes on. The first call of Err,
// which most callees make before they begin, does not read the clock.
func (c *Context) Err() error {
	if a := c.armed.Load(); a != nil {
		return a.Err()
	}
	if c.ended.Load() {
		return context.Canceled
	}
	if err := c.parent.Err(); err != nil {
		return err
	}
	if c.polled.Swap(true) && !time.Now().Before(c.limit) {
		return context.DeadlineExceeded
	}
	return nil
}

// Value returns the parent's value. Value goes through the armed context, so package
// context recognises its own type and derives a context without a goroutine.
func (c *Context) Value(key any) any { return c.arm().Value(key) }

func (c *Context) arm() *armed {
	if a := c.armed.Load(); a != nil {
		return a
	}
	a := new(armed)
	a.Context, a.cancel = context.WithDeadline(c.parent, c.limit)
	if !c.armed.CompareAndSwap(nil, a) {
		a.cancel()
		return c.armed.Load()
	}
	if c.ended.Load() {
		a.cancel()
	}
	return a
}
