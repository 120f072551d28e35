package stores

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	goredispool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	rueidispool "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
)

// redsyncRueidis is redsync with this delay between two tries.
func redsyncRueidis(delay redsync.DelayFunc) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		var pools []pool.Pool
		var clients []rueidis.Client
		for _, addr := range at {
			client, err := newRueidis(addr)
			if err != nil {
				return nil, err
			}
			clients = append(clients, client)
			pools = append(pools, rueidispool.NewPool(rueidiscompat.NewAdapter(client)))
		}
		return redsyncOn(redsync.New(pools...), delay, ttl, func() {
			for _, client := range clients {
				client.Close()
			}
		}), nil
	}
}

// redsyncGoRedis is redsyncRueidis with go-redis as the client.
func redsyncGoRedis(delay redsync.DelayFunc) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		var pools []pool.Pool
		var clients []*redis.Client
		for _, addr := range at {
			client := newGoRedis(addr)
			clients = append(clients, client)
			pools = append(pools, goredispool.NewPool(client))
		}
		return redsyncOn(redsync.New(pools...), delay, ttl, func() {
			for _, client := range clients {
				_ = client.Close()
			}
		}), nil
	}
}

func redsyncOn(rs *redsync.Redsync, delay redsync.DelayFunc, ttl time.Duration, end func()) *Library {
	const forEver = 1 << 30
	lock := func(ctx context.Context, key string) (func() error, error) {
		m := rs.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithFailFast(true),
			redsync.WithTries(forEver), redsync.WithRetryDelayFunc(delay))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error { return gone(m.UnlockContext(context.Background())) }, nil
	}
	return &Library{lock, end}
}

// every waits equally long each time. A constant delay is best on one server.
func every(pause time.Duration) redsync.DelayFunc {
	return func(int) time.Duration { return pause }
}

// between waits for a random time. On several servers, waiters that always try at the same
// time would split the servers for ever.
func between(least, most time.Duration) redsync.DelayFunc {
	return func(int) time.Duration { return least + rand.N(most-least) }
}
