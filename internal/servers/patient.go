package servers

import (
	"context"
	"errors"
	"os"
)

// Patient requests a key by a method such as Lock. Patient retries as long as an answer
// only fails to come in time, until ctx ends. A server on a busy machine is slow, which is
// not wrong.
func Patient[L, O any](ctx context.Context, ask func(ctx context.Context, key string, opts ...O) (L, error), key string, opts ...O) (L, error) {
	lock, err := ask(ctx, key, opts...)
	for late(err) && ctx.Err() == nil {
		lock, err = ask(ctx, key, opts...)
	}
	return lock, err
}

// late reports whether an answer has failed to come in time, by the error of a Locker or
// of a store.
func late(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// Insist calls a server, for example to open a store. Insist retries as long as an answer
// only fails to come in time, and ends the test if the call fails otherwise.
func Insist[T any](tb TB, call func(ctx context.Context) (T, error)) T {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	got, err := call(ctx)
	for late(err) && ctx.Err() == nil {
		got, err = call(ctx)
	}
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return got
}
