package stores

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func newRueidis(addr string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
}

// openBareRueidis is the lock that people write by hand.
func openBareRueidis(at []string, ttl time.Duration) (*Library, error) {
	client, err := newRueidis(at[0])
	if err != nil {
		return nil, err
	}
	release := rueidis.NewLuaScript(compareAndDelete)
	lock := func(ctx context.Context, key string) (func() error, error) {
		value := rand.Text()
		err := poll(ctx, pause, func() (bool, error) {
			err := client.Do(ctx, client.B().Set().Key(key).Value(value).Nx().Px(ttl).Build()).Error()
			if rueidis.IsRedisNil(err) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return nil, err
		}
		return func() error {
			n, err := release.Exec(context.Background(), client, []string{key}, []string{value}).AsInt64()
			return gone(n == 1, err)
		}, nil
	}
	return &Library{lock, client.Close}, nil
}

// openBLPOP keeps an element in a list while the key is free. Whoever takes the element has
// the lock, and nothing ends the lock of a process that has died.
func openBLPOP(at []string, _ time.Duration) (*Library, error) {
	client, err := newRueidis(at[0])
	if err != nil {
		return nil, err
	}
	free := func(key string) error {
		return client.Do(context.Background(), client.B().Rpush().Key("free:"+key).Element("1").Build()).Error()
	}
	var made sync.Map // the keys whose list is there
	lock := func(ctx context.Context, key string) (func() error, error) {
		if _, ok := made.Load(key); !ok {
			err := client.Do(ctx, client.B().Set().Key(key).Value("1").Nx().Build()).Error()
			if err == nil {
				err = free(key)
			}
			if err != nil && !rueidis.IsRedisNil(err) {
				return nil, err
			}
			made.Store(key, nil)
		}
		for {
			// A call that ctx ended could lose the element.
			err := client.Do(context.Background(), client.B().Blpop().Key("free:"+key).Timeout(1).Build()).Error()
			switch {
			case err == nil:
				return func() error { return free(key) }, nil
			case !rueidis.IsRedisNil(err):
				return nil, err
			case ctx.Err() != nil:
				return nil, ctx.Err()
			}
		}
	}
	return &Library{lock, client.Close}, nil
}

// openRueidislock sets TryNextAfter to a second instead of 20 ms. With many waiters at
// once, rueidislock gives up otherwise.
func openRueidislock(at []string, ttl time.Duration) (*Library, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: at},
		KeyMajority:    1,
		KeyValidity:    ttl,
		NoLoopTracking: true,
		TryNextAfter:   time.Second,
	})
	if err != nil {
		return nil, err
	}
	lock := func(ctx context.Context, key string) (func() error, error) {
		held, cancel, err := locks.WithContext(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error {
			defer cancel()
			return held.Err()
		}, nil
	}
	return &Library{lock, locks.Close}, nil
}
