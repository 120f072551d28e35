package worker

import (
	"cmp"
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/elect"
)

// lead campaigns, and works for one term. If the term ends before the work does, the
// election goes on, and the next term is a separate operation.
func (c *client) lead(ctx context.Context, op plan.Operation) {
	ctx, cancel := c.patience(ctx, op)
	defer cancel()
	c.ask(op)
	var last *held
	var kept error // why the last release failed, which Run does not return
	err := elect.Run(ctx, c.locks, op.Keys[0], func(ctx context.Context) error {
		lock, ok := holdfast.FromContext(ctx)
		if !ok {
			return nil
		}
		if last != nil {
			c.op++
			c.ask(op)
		}
		h, stop := c.got(lock)
		defer stop()
		last, kept = h, nil
		c.change(op.Hold, []*held{h})
		h.leave()
		return nil
	}, elect.Report(func(err error) { kept = err }),
		elect.Grace(time.Hour)) // The work ignores the loss, and takes its full time.
	if last == nil {
		c.refused(op, err)
	} else {
		last.freed(cmp.Or(err, kept))
	}
}

// patience limits the wait of an operation that has no wait of its own.
func (c *client) patience(ctx context.Context, op plan.Operation) (context.Context, context.CancelFunc) {
	if op.Wait > 0 {
		return context.WithTimeout(ctx, op.Wait)
	}
	return context.WithCancel(ctx)
}
