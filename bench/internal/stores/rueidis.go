package stores

import (
	"context"
	"crypto/rand"
	"net"
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

// openBLPOP has a list for each key, with an element while the key is free. No lock expires: if
// the process of the holder dies, the key stays locked. A waiter sends BLPOP again each
// second, from the end of the queue, because a call that the context ends could lose the element.
func openBLPOP(at []string, _ time.Duration) (*Library, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: at, DisableCache: true,
		// BLPOP needs a connection for each call, and a PING on each of them would disturb other sides.
		Dialer: net.Dialer{KeepAlive: time.Hour},
	})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	unlock := func(key string) error {
		return client.Do(ctx, client.B().Rpush().Key("free:"+key).Element("1").Build()).Error()
	}
	var made sync.Map // keys that have had their element
	makeKey := func(key string) error {
		err := client.Do(ctx, client.B().Set().Key("made:"+key).Value("1").Nx().Build()).Error()
		switch {
		case err == nil:
			err = unlock(key)
		case rueidis.IsRedisNil(err):
			err = nil // by another process
		}
		if err == nil {
			made.Store(key, nil)
		}
		return err
	}
	lock := func(until context.Context, key string) (func() error, error) {
		if _, ok := made.Load(key); !ok {
			if err := makeKey(key); err != nil {
				return nil, err
			}
		}
		for until.Err() == nil {
			err := client.Do(ctx, client.B().Blpop().Key("free:"+key).Timeout(1).Build()).Error()
			if !rueidis.IsRedisNil(err) {
				return func() error { return unlock(key) }, err
			}
		}
		return nil, until.Err()
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
