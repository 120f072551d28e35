package worker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/once"
)

// once requests an effect. The result of a run of the effect is a unique number. The client
// that has to run the effect holds a lock meanwhile.
func (c *client) once(ctx context.Context, op plan.Operation) {
	ctx, cancel := c.patience(ctx, op)
	defer cancel()
	key := op.Keys[0]
	op.Keys = []string{effectLock(key)}
	c.ask(op)
	var owner *held
	result, err := once.Runner{Locks: c.locks, Records: c.effects, Retention: time.Hour}.Do(ctx, key, func(ctx context.Context) ([]byte, error) {
		lock, ok := holdfast.FromContext(ctx)
		if !ok {
			return nil, errors.New("an effect without a lock")
		}
		var stop func() bool
		owner, stop = c.got(lock)
		defer stop()
		// As with every sample: if the lock is held now, the lock was held at the time of
		// the event.
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
	default: // done by a different client, so no lock is needed in the end
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

// effectLock returns the key that package once locks for an effect.
func effectLock(key string) string { return "once/" + key }
