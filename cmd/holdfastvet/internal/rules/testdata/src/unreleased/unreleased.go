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

func nextIteration(ctx context.Context, client *redislock.Client, keys []string) error {
	for _, key := range keys {
		lock, err := client.Obtain(ctx, key, time.Minute, nil) // want `the loop comes back with the lock "lock" held`
		if err != nil {
			return err
		}
		if err := work(ctx); err != nil {
			continue
		}
		if err := lock.Release(context.Background()); err != nil {
			return err
		}
	}
	return nil
}

func compared(mutex func() *redsync.Mutex) error {
	m := mutex()
	if m.Lock() != nil {
		return nil
	}
	if err := work(context.Background()); err != nil {
		return err // want `this return leaves the lock "m" held`
	}
	m.Unlock()
	return nil
}

func generic[T any](ctx context.Context, client *redislock.Client, load func() (T, error)) (T, error) {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		var none T
		return none, err
	}
	value, err := load()
	if err != nil {
		return value, err // want `this return leaves the lock "lock" held`
	}
	return value, lock.Release(context.Background())
}

func jump(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return err
	}
	err = work(ctx)
	if err != nil {
		goto end
	}
	err = work(ctx)
end:
	lock.Release(context.Background())
	return err
}

func switched(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	switch err {
	case nil:
	case redislock.ErrNotObtained:
		return nil
	default:
		return err
	}
	defer lock.Release(context.Background())
	return work(ctx)
}

func told(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	held := err == nil
	if !held {
		return nil
	}
	defer lock.Release(context.Background())
	return work(ctx)
}

func asked(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if !fine(err) {
		return err
	}
	defer lock.Release(context.Background())
	return work(ctx)
}

func both(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	switch {
	case err != nil && ctx.Err() != nil, err != nil:
		return err
	}
	defer lock.Release(context.Background())
	return work(ctx)
}

func methodValue(ctx context.Context, client *redislock.Client) (func(context.Context) error, error) {
	lock, err := client.Obtain(ctx, "key", time.Minute, nil)
	if err != nil {
		return nil, err
	}
	if err := work(ctx); err != nil {
		lock.Release(context.Background())
		return nil, err
	}
	return lock.Release, nil
}

func over(ctx context.Context, client *redislock.Client, keys func(yield func(string) bool)) error {
	for key := range keys {
		lock, err := client.Obtain(ctx, key, time.Minute, nil)
		if err != nil {
			return err
		}
		if err := work(ctx); err != nil {
			return err // want `this return leaves the lock "lock" held`
		}
		lock.Release(context.Background())
	}
	return nil
}

func fine(err error) bool { return err == nil }

func work(context.Context) error { return nil }
