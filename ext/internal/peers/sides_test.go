//go:build unix

package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/ext/all"
)

const ttl = 15 * time.Second

// A side is one way to lock keys on a server. Each has the settings that are best
// for it in these benchmarks.
type side struct {
	name string
	open func(servers ...string) (*library, error)

	// sends are the commands that the side sends by themselves, of those that
	// its scripts may call too.
	sends []string
}

// A library is what all sides can do. lock waits until ctx ends.
type library struct {
	lock  func(ctx context.Context, key string) (unlock func() error, err error)
	close func()
}

// sides are ours, and then theirs.
var sides = []side{
	{name: "holdfast", open: openHoldfast},
	{name: "rueidislock", open: openRueidislock},
	{name: "redsync/rueidis", open: openRedsyncRueidis, sends: []string{"set"}},
	{name: "redsync/go-redis", open: openRedsyncGoRedis, sends: []string{"set"}},
	{name: "bsm/redislock", open: openRedislock},
	{name: "bare/rueidis", open: openBareRueidis, sends: []string{"set"}},
	{name: "bare/go-redis", open: openBareGoRedis, sends: []string{"set"}},
	{name: "bare/go-redis/5ms", open: openPatientGoRedis, sends: []string{"set"}},
}

// sideNamed returns the side of this name.
func sideNamed(name string) (side, error) {
	all := slices.Concat(sides, heldSides, tableSides, sessionSides, etcdSides, zooKeeperSides)
	i := slices.IndexFunc(all, func(s side) bool { return s.name == name })
	if i < 0 {
		return side{}, fmt.Errorf("no side is called %q", name)
	}
	return all[i], nil
}

// openHoldfast locks on one server, or by Redlock on several.
func openHoldfast(servers ...string) (*library, error) {
	scheme := "redis://"
	if len(servers) > 1 {
		scheme = "redlock://"
	}
	lk, err := holdfast.Open(context.Background(), scheme+strings.Join(servers, ","), &holdfast.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return ours(lk), nil
}

func ours(lk *holdfast.Locker) *library {
	return &library{
		lock: func(ctx context.Context, key string) (func() error, error) {
			l, err := lk.Lock(ctx, key)
			if err != nil {
				return nil, err
			}
			return l.Unlock, nil
		},
		close: func() { _ = lk.Close() },
	}
}

// Pauses between two tries of those that poll. Short ones hand over sooner and
// are fairer; shorter than a millisecond many systems cannot sleep. Long ones
// get more done on one key, because those who wait disturb less.
const (
	pause     = time.Millisecond
	longPause = 5 * time.Millisecond
)

// poll tries until it has the lock.
func poll(ctx context.Context, pause time.Duration, try func() (bool, error)) error {
	for {
		if ok, err := try(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

var errGone = errors.New("the lock was gone before it was unlocked")

// compareAndDelete is how all release what they have set.
const compareAndDelete = `if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0`
