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
	return again(ctx, func(ctx context.Context) (L, error) { return ask(ctx, key, opts...) })
}

// Answer calls a server, for example to open a store. Answer retries as long as an answer only
// fails to come in time, for a minute.
func Answer[T any](ctx context.Context, call func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return again(ctx, call)
}

// Insist is Answer for a call that must succeed: Insist ends the test if the call fails.
func Insist[T any](tb TB, call func(ctx context.Context) (T, error)) T {
	tb.Helper()
	got, err := Answer(context.Background(), call)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	return got
}

func again[T any](ctx context.Context, call func(ctx context.Context) (T, error)) (T, error) {
	got, err := call(ctx)
	for late(err) && ctx.Err() == nil {
		got, err = call(ctx)
	}
	return got, err
}

// late reports whether an answer has failed to come in time, by the error of a Locker or
// of a store.
func late(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}
