package unreleased

import (
	"context"
	"time"

	"cirello.io/pglock"
	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/holdfast-go/holdfast"
	"github.com/redis/rueidis/rueidislock"
)

func early(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		return err // want `this return leaves the lock "lock" held`
	}
	return lock.Release(context.Background())
}

func reused(rs *redsync.Redsync) error {
	mutex := rs.NewMutex("key")
	err := mutex.Lock()
	if err != nil {
		return err
	}
	err = work(context.Background())
	if err != nil {
		return err // want `this return leaves the lock "mutex" held`
	}
	mutex.Unlock()
	return nil
}

func table(client *pglock.Client) error {
	lock, err := client.Acquire("key")
	if err != nil {
		return err
	}
	if time.Now().IsZero() {
		return nil // want `this return leaves the lock "lock" held`
	}
	return client.Release(lock)
}

func canceled(ctx context.Context, locker rueidislock.Locker) error {
	ctx, cancel, err := locker.WithContext(ctx, "key")
	if err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		return err // want `this return leaves the lock "cancel" held`
	}
	cancel()
	return nil
}

func deferred(ctx context.Context, locks *holdfast.Locker) error {
	lock, err := locks.Lock(ctx, "key")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	return work(ctx)
}

func everyPath(ctx context.Context, locks *holdfast.Locker) error {
	lock, err := locks.Lock(ctx, "key")
	if err != nil {
		return err
	}
	if err := work(ctx); err != nil {
		lock.Unlock()
		return err
	}
	return lock.Unlock()
}

func handedOn(ctx context.Context, locks *holdfast.Locker) (*holdfast.Lock, error) {
	lock, err := locks.Lock(ctx, "key")
	if err != nil {
		return nil, err
	}
	if err := work(ctx); err != nil {
		lock.Unlock()
		return nil, err
	}
	return lock, nil
}

func leftToExpire(ctx context.Context, client *redislock.Client) error {
	if _, err := client.Obtain(ctx, "key", time.Minute, nil); err != nil {
		return err
	}
	return work(ctx)
}

func onlyIfHeld(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	held := err == nil
	if err := work(ctx); err != nil {
		return err
	}
	if held {
		return lock.Release(context.Background())
	}
	return nil
}

func work(context.Context) error { return nil }
