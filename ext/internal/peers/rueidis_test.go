//go:build unix

package peers

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	rueidispool "github.com/go-redsync/redsync/v4/redis/rueidis"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidiscompat"
	"github.com/redis/rueidis/rueidislock"
)

func newRueidis(server string) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server}, DisableCache: true})
}

func openBareRueidis(servers ...string) (*library, error) {
	client, err := newRueidis(servers[0])
	if err != nil {
		return nil, err
	}
	return bareRueidis(client), nil
}

// bareRueidis is the lock that people write by hand.
func bareRueidis(client rueidis.Client) *library {
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
			if err == nil && n != 1 {
				err = errGone
			}
			return err
		}, nil
	}
	return &library{lock, client.Close}
}

// openRueidislock lets it wait for a second where it would for 20 ms: with many
// at once it gives up otherwise.
func openRueidislock(servers ...string) (*library, error) {
	return newRueidislock(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: servers},
		KeyMajority:    1,
		KeyValidity:    ttl,
		NoLoopTracking: true,
		TryNextAfter:   time.Second,
	})
}

func newRueidislock(option rueidislock.LockerOption) (*library, error) {
	lk, err := rueidislock.NewLocker(option)
	if err != nil {
		return nil, err
	}
	lock := func(ctx context.Context, key string) (func() error, error) {
		held, cancel, err := lk.WithContext(ctx, key)
		if err != nil {
			return nil, err
		}
		return func() error {
			defer cancel()
			return held.Err()
		}, nil
	}
	return &library{lock, lk.Close}, nil
}

func openRedsyncRueidis(servers ...string) (*library, error) {
	var pools []pool.Pool
	var clients []rueidis.Client
	for _, server := range servers {
		client, err := newRueidis(server)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
		pools = append(pools, rueidispool.NewPool(rueidiscompat.NewAdapter(client)))
	}
	return redsyncOn(redsync.New(pools...), func() {
		for _, client := range clients {
			client.Close()
		}
	}), nil
}

func redsyncOn(rs *redsync.Redsync, end func()) *library {
	const forEver = 1 << 30
	lock := func(ctx context.Context, key string) (func() error, error) {
		m := rs.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithFailFast(true),
			redsync.WithTries(forEver), redsync.WithRetryDelay(pause))
		if err := m.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error {
			ok, err := m.UnlockContext(context.Background())
			if ok {
				return nil
			}
			if err == nil {
				err = errGone
			}
			return err
		}, nil
	}
	return &library{lock, end}
}
