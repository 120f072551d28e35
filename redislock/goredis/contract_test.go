package goredis_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/goredis"
)

// harness is one of stores that each have a client of their own, as processes
// do.
func harness(opts *redislock.Options, client func() redis.UniversalClient) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: time.Millisecond,
		Open: func(t testing.TB) driver.Store {
			c := client()
			t.Cleanup(func() { c.Close() })
			return must.Get(goredis.New(c, opts))
		},
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]redis.Options{
		"RESP3": {DialTimeout: patience, ReadTimeout: patience}, // see unhurried
		"RESP2": {DialTimeout: patience, ReadTimeout: patience, Protocol: 2, ContextTimeoutEnabled: true},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "RESP2" {
				repeated(t)
			}
			r := servers.StartRedis(t)
			at := func(addr string) drivertest.Harness {
				return harness(nil, func() redis.UniversalClient {
					opts := opts
					opts.Addr = addr
					return redis.NewClient(&opts)
				})
			}
			h := at(r.Addr())
			h.Linked = func(t testing.TB) (driver.Store, drivertest.Link) {
				p := servers.StartProxy(t, r.Addr())
				return at(p.Addr()).Open(t), p
			}
			drivertest.Run(t, h)
		})
	}
}

// repeated leaves to make prove what other tests check in short: TestFailover, and the
// contracts in package redislock.
func repeated(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
}

func TestContractBehindSentinels(t *testing.T) {
	repeated(t)
	t.Parallel()
	s := servers.StartSentinel(t).Calm()
	drivertest.Run(t, harness(&redislock.Options{Wait: 1}, func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: servers.MasterName, SentinelAddrs: s.Addrs(), DialTimeout: patience, ReadTimeout: patience,
		})
	}))
}

func TestContractInCluster(t *testing.T) {
	repeated(t)
	t.Parallel()
	c := servers.StartCluster(t).Calm()
	drivertest.Run(t, harness(nil, func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), DialTimeout: patience, ReadTimeout: patience})
	}))
}

func BenchmarkStore(b *testing.B) {
	r := servers.StartRedis(b)
	drivertest.Bench(b, harness(nil, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: r.Addr()})
	}))
}
