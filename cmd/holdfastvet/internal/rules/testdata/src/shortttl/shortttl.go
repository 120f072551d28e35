package shortttl

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
)

func timeout(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", 10*time.Second, nil)
	if err != nil {
		return err
	}
	defer lock.Release(context.Background())
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // want `1m0s is longer than the TTL of the lock, 10s`
	defer cancel()
	return work(ctx)
}

func sleep(rs *redsync.Redsync) error {
	mutex := rs.NewMutex("key", redsync.WithTries(1))
	if err := mutex.Lock(); err != nil {
		return err
	}
	time.Sleep(20 * time.Second) // want `20s is longer than the TTL of the lock, 8s`
	_, err := mutex.Unlock()
	return err
}

func long(rs *redsync.Redsync) error {
	mutex := rs.NewMutex("key", redsync.WithExpiry(time.Minute))
	if err := mutex.Lock(); err != nil {
		return err
	}
	time.Sleep(20 * time.Second)
	_, err := mutex.Unlock()
	return err
}

func extended(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", 10*time.Second, nil)
	if err != nil {
		return err
	}
	defer lock.Release(context.Background())
	for range 10 {
		time.Sleep(20 * time.Second)
		if err := lock.Refresh(ctx, 30*time.Second, nil); err != nil {
			return err
		}
	}
	return nil
}

func afterwards(ctx context.Context, client *redislock.Client) error {
	lock, err := client.Obtain(ctx, "key", 10*time.Second, nil)
	if err != nil {
		time.Sleep(time.Minute)
		return err
	}
	err = lock.Release(ctx)
	time.Sleep(time.Minute)
	return err
}

func refused(rs *redsync.Redsync) {
	mutex := rs.NewMutex("key")
	if mutex.Lock() != nil {
		time.Sleep(time.Minute)
		return
	}
	mutex.Unlock()
}

func atTheEnd(ctx context.Context, client *redislock.Client) {
	defer func() {
		lock, err := client.Obtain(ctx, "key", 10*time.Second, nil)
		if err == nil {
			lock.Release(context.Background())
		}
	}()
	time.Sleep(time.Minute)
}

func work(context.Context) error { return nil }
