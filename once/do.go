package once

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Do runs fn once for a key and returns its result; whoever asks again within
// the retention gets the same result, in any process that shares the locks and
// the records. Retention is that of [Options], options are those of [Begin].
//
// The context of fn carries the lock, and ends when that is lost. If fn returns an
// error, Do returns it, nothing is remembered, and the next may try; a panic is
// the same. If its result could not be remembered, Do returns the result and an
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

// Forget forgets the result of a key, so that it may run again, or that it was
// begun. It waits for an owner at work to give the key back. Options are those of
// [Begin].
func Forget(ctx context.Context, locks *holdfast.Locker, records Records, key string, opts ...holdfast.LockOption) error {
	e := &Effect{key: key, retention: usual}
	if err := e.check(Options{}); err != nil {
		return e.failed("forget", err)
	}
	return locks.Do(ctx, lockPrefix+key, func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return e.failed("forget", records.Forget(ctx, key, lock.Fence()))
	}, alone(opts)...)
}
