package loopdefer

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
)

func every(ctx context.Context, client *redislock.Client, keys []string) error {
	for _, key := range keys {
		lock, err := client.Obtain(ctx, key, time.Minute, nil)
		if err != nil {
			return err
		}
		defer lock.Release(context.Background()) // want `the release is deferred in a loop`
		work()
	}
	return nil
}

func literal(rs *redsync.Redsync, keys []string) error {
	for _, key := range keys {
		mutex := rs.NewMutex(key)
		if err := mutex.Lock(); err != nil {
			return err
		}
		defer func() {
			mutex.Unlock() // want `the release is deferred in a loop`
		}()
		work()
	}
	return nil
}

func perCall(rs *redsync.Redsync, keys []string) {
	for _, key := range keys {
		func() {
			mutex := rs.NewMutex(key)
			if err := mutex.Lock(); err != nil {
				return
			}
			defer mutex.Unlock()
			work()
		}()
	}
}

func retry(ctx context.Context, client *redislock.Client) {
	for {
		lock, err := client.Obtain(ctx, "key", time.Minute, nil)
		if err != nil {
			continue
		}
		defer lock.Release(context.Background())
		work()
		return
	}
}

func onlyOne(ctx context.Context, client *redislock.Client) error {
	for {
		lock, err := client.Obtain(ctx, "key", time.Minute, nil)
		if err != nil {
			continue
		}
		defer lock.Release(context.Background())
		if ctx.Err() != nil {
			return ctx.Err()
		} else {
			return nil
		}
	}
}

func jump(mutex *redsync.Mutex) {
again:
	if err := mutex.Lock(); err != nil {
		return
	}
	defer mutex.Unlock() // want `the release is deferred in a loop`
	work()
	goto again
}

func over(rs *redsync.Redsync, keys func(yield func(string) bool)) {
	for key := range keys {
		mutex := rs.NewMutex(key)
		if err := mutex.Lock(); err != nil {
			return
		}
		defer mutex.Unlock() // want `the release is deferred in a loop`
		work()
	}
}

func inTheEnd(ctx context.Context, client *redislock.Client) {
	defer func() {
		for {
			lock, err := client.Obtain(ctx, "key", time.Minute, nil)
			if err != nil {
				return
			}
			lock.Release(context.Background())
		}
	}()
	work()
}

func work() {}
