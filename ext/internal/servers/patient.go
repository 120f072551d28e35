package servers

import (
	"context"
	"errors"
)

// Patient asks for a key, by a method such as Lock, again as long as an answer only
// fails to come in time, until ctx ends: a server on a busy machine is slow, which
// is not wrong.
func Patient[L, O any](ctx context.Context, ask func(ctx context.Context, key string, opts ...O) (L, error), key string) (L, error) {
	lock, err := ask(ctx, key)
	for errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		lock, err = ask(ctx, key)
	}
	return lock, err
}
