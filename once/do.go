package once

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// Do runs fn once for a key and returns the result of fn. Within the retention, a
// repeated call returns the same result, in every process that shares the locks and the
// records. For retention see [Options]; opts are the lock options of [Begin].
//
// The context of fn carries the lock, and ends when the lock is lost. If fn returns an
// error or panics, nothing is remembered, and the next caller may try. Do returns the
// error of fn. If the result could not be remembered, Do returns the result and an
// error that matches [ErrUnrecorded].
func Do(ctx context.Context, locks *holdfast.Locker, records Records, key string, retention time.Duration, fn func(context.Context) ([]byte, error), opts ...holdfast.LockOption) (result []byte, err error) {
	e, err := Begin(ctx, locks, records, key, Options{Retention: retention}, opts...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if result, done := e.Result(); done {
		return result, nil
	}
	result, err = fn(e.Context(ctx))
	if err != nil {
		return nil, err
	}
	return result, e.Finish(ctx, result)
}

// Forget removes the result of a key, or the mark of a begun effect, so that the effect
// may run again. Forget waits until an owner at work has released the key. opts are the
// lock options of [Begin].
func Forget(ctx context.Context, locks *holdfast.Locker, records Records, key string, opts ...holdfast.LockOption) error {
	e := &Effect{key: key, retention: usual}
	if err := e.check(Options{}); err != nil {
		return e.failed("forget", err)
	}
	caller := ctx
	return locks.Do(ctx, lockPrefix+key, func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return e.failed("forget", silence.For(caller, records.Forget(ctx, key, lock.Fence()), patience))
	}, alone(opts)...)
}
