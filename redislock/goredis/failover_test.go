package goredis_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
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
		s := servers.StartSentinel(t).Calm()
		client := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: servers.MasterName, SentinelAddrs: s.Addrs(), DialTimeout: patience, ReadTimeout: patience,
		})
		handsOver(t, client, func() { s.Failover() })
	})
	t.Run("Cluster", func(t *testing.T) {
		c := servers.StartCluster(t).Calm()
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), DialTimeout: patience, ReadTimeout: patience})
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
	for range 5 {
		grants(t, s)
	}
	failover()
	for range 5 { // Connections to the former primaries may fail.
		servers.Await(t, "a grant that is sent", func() error { return handOver(t, s) })
	}
}

// grants has a store hand over a key to itself, again only if the machine was slow.
func grants(t *testing.T, s *redislock.Store) {
	t.Helper()
	servers.Insist(t, func(context.Context) (any, error) { return nil, handOver(t, s) })
}

// handOver has a store hand over a key to itself. A wrong answer ends the test. handOver returns
// the error of a call, or an [os.ErrDeadlineExceeded] if the hand-over shows nothing.
func handOver(t *testing.T, s *redislock.Store) error {
	key := rand.Text()
	holder, waiter := exclusive(key, rand.Text()), exclusive(key, rand.Text())
	releases := []driver.Release{{Claim: holder}, {Claim: waiter}}
	defer s.Release(t.Context(), releases)
	woken := make(chan driver.Grant, 100)
	stop, err := s.Watch(t.Context(), waiter, func(g driver.Grant) { woken <- g })
	if err != nil {
		return err
	}
	defer stop()
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: holder}); err != nil {
		return err
	} else if !g.OK {
		t.Fatalf("%s was refused: %+v", key, g)
	}
	for len(woken) > 0 { // when the store listened for the first time
		<-woken
	}
	asked := time.Now()
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: waiter, Wait: true}); err != nil {
		return err
	} else if g.OK {
		t.Fatalf("%s was granted while another claim holds: %+v", key, g)
	}
	if err := s.Release(t.Context(), releases[:1])[0]; err != nil {
		return err
	}
	if time.Since(asked) > waiter.Alive() {
		return fmt.Errorf("the waiter may have lost its place: %w", os.ErrDeadlineExceeded)
	}
	// A store that listens anew may have missed the grant, and wakes the waiter without a grant.
	late, anew := time.After(patience), false
	for {
		select {
		case g := <-woken:
			if g.OK {
				return nil
			}
			late, anew = time.After(5*time.Second), true
		case <-late:
			if !anew {
				t.Fatalf("the grant of %s was not sent", key)
			}
			return fmt.Errorf("the store listens anew: %w", os.ErrDeadlineExceeded)
		}
	}
}
