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

// Insist makes a call to a server, such as the opening of a store, again as long as an
// answer only fails to come in time, and ends the test if it fails otherwise.
func Insist[T any](tb TB, call func(ctx context.Context) (T, error)) T {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := call(ctx)
	for errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		got, err = call(ctx)
	}
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return got
}
