package redislock_test

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
)

// opening is a harness of a store that a URL names.
func opening(url string) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: time.Millisecond,
		Open: func(t testing.TB) driver.Store {
			t.Helper()
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
		},
	}
}

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is silent.
func TestContract(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	h := opening(r.URL())
	var prefixes sync.Map // by rule: the records of a newer release disturb other rules
	open := func(t testing.TB, addr string) driver.Store {
		prefix, _ := prefixes.LoadOrStore(t, rand.Text())
		return opening("redis://" + addr + "?prefix=" + prefix.(string) + ":").Open(t)
	}
	h.Open = func(t testing.TB) driver.Store { return open(t, r.Addr()) }
	h.Newer = func(t testing.TB, key string) func() string { return newer(t, r, key) }
	h.Linked = func(t testing.TB) (driver.Store, drivertest.Link) {
		p := servers.StartProxy(t, r.Addr())
		return open(t, p.Addr()), p
	}
	drivertest.Run(t, h)
}

func BenchmarkStore(b *testing.B) {
	drivertest.Bench(b, opening(servers.StartRedis(b).URL()))
}

// repeated leaves to make prove a contract that other tests check in short: over another
// client, or its main steps.
func repeated(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
}

// sharing returns the harnesses of stores that share three clients of Redis. Each client
// has a connection to every server, and its buffers cost more than most rules.
func sharing(t *testing.T, servedBy rueidis.ClientOption) func(*redislock.Options) drivertest.Harness {
	t.Helper()
	servedBy.DisableCache = true
	var clients [3]rueidis.Client
	for i := range clients {
		clients[i] = servers.Insist(t, func(context.Context) (rueidis.Client, error) { return rueidis.NewClient(servedBy) })
		t.Cleanup(clients[i].Close)
	}
	var next atomic.Uint64
	return func(opts *redislock.Options) drivertest.Harness {
		return drivertest.Harness{
			MinTTL: time.Millisecond,
			Open: func(testing.TB) driver.Store {
				return must.Get(redislock.New(clients[next.Add(1)%uint64(len(clients))], opts))
			},
		}
	}
}

// The contract over the connections that Sentinel leads to. The commands are those of
// TestContract. TestConnectionsGoToThePrimary and TestCloseWhileConnecting use such
// connections.
func TestContractBehindSentinels(t *testing.T) {
	repeated(t)
	t.Parallel()
	harness := sharing(t, rueidis.ClientOption{
		InitAddress: servers.StartSentinel(t).Calm().Addrs(),
		Sentinel:    rueidis.SentinelOption{MasterSet: servers.MasterName},
	})
	t.Run("plain", func(t *testing.T) { drivertest.Run(t, harness(nil)) })
	t.Run("wait=1", func(t *testing.T) { drivertest.Run(t, harness(&redislock.Options{Wait: 1})) })
}

// Worth 20 s: the contract over keys that several servers share.
func TestContractInACluster(t *testing.T) {
	t.Parallel()
	harness := sharing(t, rueidis.ClientOption{InitAddress: servers.StartCluster(t).Calm().Addrs()})
	t.Run("plain", func(t *testing.T) { drivertest.Run(t, harness(nil)) })
	t.Run("wait=1", func(t *testing.T) {
		repeated(t)
		drivertest.Run(t, harness(&redislock.Options{Wait: 1}))
	})
}
