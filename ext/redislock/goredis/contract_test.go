package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/ext/redislock"
	"github.com/holdfast-go/holdfast/ext/redislock/goredis"
)

// harness is one of stores that each have a client of their own, as processes
// do.
func harness(opts *redislock.Options, client func() redis.UniversalClient) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: time.Millisecond,
		Open: func(t testing.TB) driver.Store {
			c := client()
			t.Cleanup(func() { c.Close() })
			return goredis.New(c, opts)
		},
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	t.Run("RESP3", func(t *testing.T) {
		r := servers.StartRedis(t)
		drivertest.Run(t, harness(nil, func() redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: r.Addr()})
		}))
	})
	t.Run("RESP2", func(t *testing.T) {
		r := servers.StartRedis(t)
		drivertest.Run(t, harness(nil, func() redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: 2, ContextTimeoutEnabled: true})
		}))
	})
}

func TestContractBehindSentinels(t *testing.T) {
	t.Parallel()
	s := servers.StartSentinel(t).Calm()
	drivertest.Run(t, harness(&redislock.Options{Wait: 1}, func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: servers.MasterName, SentinelAddrs: s.Addrs()})
	}))
}

func TestContractInCluster(t *testing.T) {
	t.Parallel()
	c := servers.StartCluster(t)
	drivertest.Run(t, harness(nil, func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	}))
}

func BenchmarkStore(b *testing.B) {
	r := servers.StartRedis(b)
	drivertest.Bench(b, harness(nil, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: r.Addr()})
	}))
}
