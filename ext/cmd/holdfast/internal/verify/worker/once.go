package worker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/history"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
	"github.com/holdfast-go/holdfast/once"
)

// once asks for an effect, whose result is a number that no other run of it has.
func (c *client) once(ctx context.Context, op plan.Operation) {
	ctx, cancel := c.patience(ctx, op)
	defer cancel()
	key := op.Keys[0]
	result, err := once.Do(ctx, c.locks, c.effects, key, time.Hour, func(ctx context.Context) ([]byte, error) {
		lock, ok := holdfast.FromContext(ctx)
		if !ok {
			return nil, errors.New("an effect without a lock")
		}
		// As with all samples: if the lock says now that it is held, it was then.
		began := history.Event{At: history.Now(), Kind: history.Effect, Key: key, Value: c.value()}
		began.Token, began.No = lock.Fence(), lock.Err() != nil
		c.tell(began)
		c.sleep(op.Hold)
		return strconv.AppendUint(nil, c.value(), 10), nil
	})
	if err != nil {
		c.refused(op, err)
		return
	}
	value, err := strconv.ParseUint(string(result), 10, 64)
	if err != nil {
		c.fail(err)
		return
	}
	c.tell(history.Event{Kind: history.Result, Key: key, Value: value})
}
