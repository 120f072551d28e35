//go:build unix

package peers

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	goredispool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func newGoRedis(server string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: server})
}

func openBareGoRedis(servers ...string) (*library, error) {
	return bareGoRedis(newGoRedis(servers[0]), pause), nil
}

func openPatientGoRedis(servers ...string) (*library, error) {
	return bareGoRedis(newGoRedis(servers[0]), longPause), nil
}

func bareGoRedis(client *redis.Client, pause time.Duration) *library {
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
			if err == nil && n != 1 {
				err = errGone
			}
			return err
		}, nil
	}
	return &library{lock, func() { _ = client.Close() }}
}

func openRedsyncGoRedis(servers ...string) (*library, error) {
	var pools []pool.Pool
	var clients []*redis.Client
	for _, server := range servers {
		client := newGoRedis(server)
		clients = append(clients, client)
		pools = append(pools, goredispool.NewPool(client))
	}
	return redsyncOn(redsync.New(pools...), func() {
		for _, client := range clients {
			_ = client.Close()
		}
	}), nil
}

func openRedislock(servers ...string) (*library, error) {
	client := newGoRedis(servers[0])
	lk := redislock.New(client)
	lock := func(ctx context.Context, key string) (func() error, error) {
		l, err := lk.Obtain(ctx, key, ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(pause)})
		if err != nil {
			return nil, err
		}
		return func() error { return l.Release(context.Background()) }, nil
	}
	return &library{lock, func() { _ = client.Close() }}, nil
}
