package keptlock

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/holdfast-go/holdfast"
	"github.com/redis/rueidis/rueidislock"
)

type worker struct {
	client *redislock.Client
	lock   *redislock.Lock
	second *redislock.Lock
	third  map[string]*redislock.Lock
	used   *redislock.Lock
	given  *redislock.Lock
	Public *redislock.Lock
	cancel context.CancelFunc
}

func (w *worker) direct(ctx context.Context) (err error) {
	w.lock, err = w.client.Obtain(ctx, "a", time.Minute, nil) // want `no function reads the field "lock"`
	return err
}

func (w *worker) copied(ctx context.Context) error {
	if w.second != nil {
		return nil
	}
	lock, err := w.client.Obtain(ctx, "b", time.Minute, nil) // want `no function reads the field "second"`
	if err != nil {
		return err
	}
	w.second = lock
	return nil
}

func (w *worker) element(ctx context.Context) error {
	lock, err := w.client.Obtain(ctx, "c", time.Minute, nil) // want `no function reads the field "third"`
	if err != nil {
		return err
	}
	w.third["c"] = lock
	return nil
}

func (w *worker) released(ctx context.Context) (err error) {
	w.used, err = w.client.Obtain(ctx, "d", time.Minute, nil)
	return err
}

func (w *worker) release() error { return w.used.Release(context.Background()) }

func (w *worker) handed(ctx context.Context) (lock *redislock.Lock, err error) {
	w.given, err = w.client.Obtain(ctx, "e", time.Minute, nil)
	return w.given, err
}

func (w *worker) public(ctx context.Context) (err error) {
	w.Public, err = w.client.Obtain(ctx, "f", time.Minute, nil)
	return err
}

func (w *worker) canceled(ctx context.Context, locker rueidislock.Locker) (err error) {
	ctx, w.cancel, err = locker.WithContext(ctx, "g") // want `no function reads the field "cancel"`
	<-ctx.Done()
	return err
}

type holder struct{ lock *holdfast.Lock }

func literal(ctx context.Context, locks *holdfast.Locker) (*holder, error) {
	lock, err := locks.Lock(ctx, "key") // want `no function reads the field "lock"`
	if err != nil {
		return nil, err
	}
	return &holder{lock: lock}, nil
}

type box[T any] struct {
	value T
	lock  *holdfast.Lock
}

func fill[T any](ctx context.Context, locks *holdfast.Locker, b *box[T]) (err error) {
	b.lock, err = locks.Lock(ctx, "key")
	return err
}

func (b *box[T]) empty() error { return b.lock.Unlock() }
