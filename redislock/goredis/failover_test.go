package goredis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/goredis"
)

// TestFailover sees whether grants still come by themselves from a server that
// has taken over.
func TestFailover(t *testing.T) {
	t.Parallel()
	t.Run("Sentinel", func(t *testing.T) {
		s := servers.StartSentinel(t)
		client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: servers.MasterName, SentinelAddrs: s.Addrs()})
		handsOver(t, client, func() { s.Failover() })
	})
	t.Run("Cluster", func(t *testing.T) {
		c := servers.StartCluster(t).Calm()
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
		handsOver(t, client, func() {
			for _, primary := range c.Primaries() {
				c.Failover(primary)
			}
		})
	})
}

// handsOver has a store hand over keys to itself, before and after a failover.
func handsOver(t *testing.T, client redis.UniversalClient, failover func()) {
	defer client.Close()
	s := must.Get(goredis.New(client, nil))
	defer s.Close()
	turn := 0
	round := func() string {
		turn++
		return handOver(t, s, turn)
	}
	for range 5 {
		eventually(t, round)
	}
	failover()
	for range 5 {
		eventually(t, round)
	}
}

// handOver has a store hand over a key to itself, and says what is wrong. On a slow machine
// the waiter may lose its place before.
func handOver(t *testing.T, s *redislock.Store, turn int) (wrong string) {
	key := fmt.Sprint("key ", turn%20)
	holder, waiter := exclusive(key, fmt.Sprint("holder ", turn)), exclusive(key, fmt.Sprint("waiter ", turn))
	releases := []driver.Release{{Claim: holder}, {Claim: waiter}}
	defer s.Release(t.Context(), releases)
	woken := make(chan driver.Grant, 100)
	stop, err := s.Watch(t.Context(), waiter, func(g driver.Grant) { woken <- g })
	if err != nil {
		return err.Error()
	}
	defer stop()
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: holder}); err != nil || !g.OK {
		return fmt.Sprint(g, err)
	}
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: waiter, Wait: true}); err != nil || g.OK {
		return fmt.Sprint(g, err)
	}
	if err := s.Release(t.Context(), releases[:1])[0]; err != nil {
		return err.Error()
	}
	late := time.After(5 * time.Second)
	for {
		select {
		case g := <-woken:
			if g.OK {
				return ""
			}
		case <-late:
			return "the grant was not sent"
		}
	}
}
