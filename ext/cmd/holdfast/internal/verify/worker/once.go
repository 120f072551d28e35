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
// Who has to run it holds a lock meanwhile.
func (c *client) once(ctx context.Context, op plan.Operation) {
	ctx, cancel := c.patience(ctx, op)
	defer cancel()
	key := op.Keys[0]
	op.Keys = []string{effectLock(key)}
	c.ask(op)
	var owner *held
	result, err := once.Do(ctx, c.locks, c.effects, key, time.Hour, func(ctx context.Context) ([]byte, error) {
		lock, ok := holdfast.FromContext(ctx)
		if !ok {
			return nil, errors.New("an effect without a lock")
		}
		var stop func() bool
		owner, stop = c.got(lock)
		defer stop()
		// As with all samples: if the lock says now that it is held, it was then.
		began := history.Event{At: history.Now(), Kind: history.Effect, Key: key, Value: c.value()}
		began.Token, began.No = owner.token, lock.Err() != nil
		c.tell(began)
		c.spend(op.Hold, []*held{owner})
		owner.leave()
		return strconv.AppendUint(nil, c.value(), 10), nil
	})
	switch {
	case owner != nil:
		owner.freed(err)
	case err != nil:
		c.refused(op, err)
	default: // somebody else's, for which no lock is needed in the end
		c.tell(history.Event{Kind: history.Refused, Mode: string(op.Kind), Note: "it is done"})
	}
	if err != nil {
		return
	}
	value, err := strconv.ParseUint(string(result), 10, 64)
	if err != nil {
		c.fail(err)
		return
	}
	c.tell(history.Event{Kind: history.Result, Key: key, Value: value})
}

// effectLock is the key that package once locks for an effect.
func effectLock(key string) string { return "once/" + key }
