package holdfast

import (
	"context"
	"errors"
)

// Do calls fn while it holds the lock on key. The context of fn carries the lock, and ends
// when the lock is lost; its cause says why.
//
// Do returns the error of acquiring the lock, or the error of fn. If the lock was lost
// before fn returned, the error also matches [ErrLost], because fn may not have been
// alone. Do takes the same options as Lock.
func (lk *Locker) Do(ctx context.Context, key string, fn func(context.Context) error, opts ...LockOption) error {
	lock, err := lk.Lock(ctx, key, opts...)
	if err != nil {
		return err
	}
	return during(ctx, lock, fn)
}

// A holder is what fn can run under: a Lock or a Group.
type holder interface {
	Context(context.Context) context.Context
	Unlock() error
}

func during(ctx context.Context, h holder, fn func(context.Context) error) (err error) {
	defer func() { err = errors.Join(err, h.Unlock()) }()
	return fn(h.Context(ctx))
}
