// Package bounded makes contexts for short calls: a time limit that costs
// nothing unless the callee waits for it.
//
// context.WithTimeout allocates and starts a timer for every call. A store in
// memory never looks at either, and a lock on it is cheaper than the timer.
package bounded

import (
	"context"
	"sync"
	"time"
)

// A Context ends with its parent, at its limit, or at End. The zero value is
// ready for Start. Each Context serves one call.
type Context struct {
	parent context.Context
	limit  time.Time

	mu     sync.Mutex
	armed  context.Context // made when somebody first waits
	cancel context.CancelFunc
	ended  bool
}

var _ context.Context = (*Context)(nil)

// Start sets the parent and the limit and returns c.
func (c *Context) Start(parent context.Context, limit time.Time) *Context {
	c.parent, c.limit = parent, limit
	return c
}

// End ends the context: the call is over.
func (c *Context) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.cancel != nil {
		c.cancel()
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

// Err says why the context has ended, nil if it has not.
func (c *Context) Err() error {
	c.mu.Lock()
	armed, ended := c.armed, c.ended
	c.mu.Unlock()
	switch {
	case armed != nil:
		return armed.Err()
	case ended:
		return context.Canceled
	case c.parent.Err() != nil:
		return c.parent.Err()
	case !time.Now().Before(c.limit):
		return context.DeadlineExceeded
	}
	return nil
}

// Value returns the parent's value. It goes through the armed context, so that
// package context recognises it as its own and derives from it without a
// goroutine.
func (c *Context) Value(key any) any { return c.arm().Value(key) }

func (c *Context) arm() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.armed == nil {
		c.armed, c.cancel = context.WithDeadline(c.parent, c.limit)
		if c.ended {
			c.cancel()
		}
	}
	return c.armed
}
