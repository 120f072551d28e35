package stores

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redislock/goredis"
)

func newGoRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}

func openGoRedis(at []string, ttl time.Duration) (*Library, error) {
	client := newGoRedis(at[0])
	store, err := goredis.New(client, nil)
	if err != nil {
		return nil, err
	}
	locks, err := holdfast.New(store, &holdfast.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	lib := holdfastOn(locks)
	end := lib.Close
	lib.Close = func() {
		end()
		_ = client.Close()
	}
	return lib, nil
}

// setGoRedis is the lock that people write by hand, with this pause between two tries.
func setGoRedis(pause time.Duration) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		return bareGoRedis(newGoRedis(at[0]), ttl, pause), nil
	}
}

func bareGoRedis(client *redis.Client, ttl, pause time.Duration) *Library {
	release := redis.NewScript(compareAndDelete)
	lock := func(ctx context.Context, key string) (func() error, error) {
		value := rand.Text()
		err := poll(ctx, pause, func() (bool, error) {
			return client.SetNX(ctx, key, value, ttl).Result()
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			n, err := release.Run(context.Background(), client, []string{key}, value).Int64()
			return gone(n == 1, err)
		}, nil
	}
	return &Library{lock, func() { _ = client.Close() }}
}

// redislockEvery is bsm/redislock with this pause between two tries.
func redislockEvery(pause time.Duration) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		client := newGoRedis(at[0])
		locks := redislock.New(client)
		lock := func(ctx context.Context, key string) (func() error, error) {
			l, err := locks.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(pause)})
			if err != nil {
				return nil, err
			}
			return func() error { return l.Release(context.Background()) }, nil
		}
		return &Library{lock, func() { _ = client.Close() }}, nil
	}
}
