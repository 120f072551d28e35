package goredis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/goredis"
)

// TestRefusesSeveralServers before the first lock: New does no I/O. The balancer spreads
// connections over two servers, each of which excludes.
func TestRefusesSeveralServers(t *testing.T) {
	t.Parallel()
	balancer := servers.StartBalancer(t, servers.StartRedis(t).Addr(), servers.StartRedis(t).Addr())
	for _, size := range []int{1, 10} {
		servers.Until(t, "a canary in time", func() bool {
			client := redis.NewClient(&redis.Options{Addr: balancer, PoolSize: size, DialTimeout: patience, ReadTimeout: patience})
			defer client.Close()
			store := must.Get(goredis.New(client, nil))
			defer store.Close()
			began := time.Now()
			g, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")})
			if !errors.Is(err, driver.ErrInvalid) && time.Since(began) >= time.Second {
				return false // A canary ends after two seconds, with a result or without.
			}
			if g.OK || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "or the address leads to several servers") {
				t.Errorf("with %d connections: %+v, %v; want an ErrInvalid that names the servers", size, g, err)
			}
			return true
		})
	}
}

// TestFailoverWhileProving has new connections lead to the new primary, and a connection of the pool
// to the old one, which accepts writes. The store grants nothing, and is not refused for good.
func TestFailoverWhileProving(t *testing.T) {
	t.Parallel()
	old := servers.StartRedis(t)
	young := servers.StartReplica(t, old.Addr())
	young.Promote()
	front := servers.StartProxy(t, old.Addr())
	var store *redislock.Store
	servers.Until(t, "a canary in time", func() bool {
		front.Lead(old.Addr())
		client := redis.NewClient(&redis.Options{Addr: front.Addr(), DialTimeout: patience, ReadTimeout: patience})
		t.Cleanup(func() { client.Close() })
		must.Get(client.Ping(t.Context()).Result())
		front.Lead(young.Addr())
		store = must.Get(goredis.New(client, nil))
		t.Cleanup(func() { store.Close() })
		g, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")})
		if errors.Is(err, driver.ErrInvalid) || err != nil && !strings.Contains(err.Error(), "as during a failover") {
			t.Fatalf("got %+v, %v; want an error that says that a failover may be the reason", g, err)
		}
		return err != nil
	})
	front.Reset()
	servers.Until(t, "a grant of the new primary", func() bool {
		g, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("other", "id")})
		if errors.Is(err, driver.ErrInvalid) {
			t.Fatal(err)
		}
		return g.OK
	})
}

// TestProvesWithOneConnection has a pool without a connection to spare.
func TestProvesWithOneConnection(t *testing.T) {
	t.Parallel()
	s, _ := open(t, &redis.Options{Addr: servers.StartRedis(t).Addr(), PoolSize: 1, DialTimeout: patience, ReadTimeout: patience})
	granted(t, s, exclusive("key", "id"))
}
