package redislock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/redislock"
)

// promoted returns a primary and a former replica of the primary. Both accept writes, as during a
// failover that the old primary has not heard of.
func promoted(t *testing.T) (old, young *servers.Redis) {
	t.Helper()
	old = servers.StartRedis(t)
	young = servers.StartReplica(t, old.Addr())
	young.Promote()
	return old, young
}

// TestFailoverWhileProving has new connections lead to the new primary, and the connection of the
// store to the old one. The store grants nothing, and is not refused for good.
func TestFailoverWhileProving(t *testing.T) {
	t.Parallel()
	old, young := promoted(t)
	front := servers.StartProxy(t, old.Addr())
	var store *redislock.Store
	until(t, "a canary in time", func() bool {
		front.Lead(old.Addr())
		client := must.Get(rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{front.Addr()}, Dialer: net.Dialer{Timeout: patience}, ForceSingleClient: true, DisableCache: true,
		}))
		t.Cleanup(client.Close)
		front.Lead(young.Addr())
		store = must.Get(redislock.New(client, nil))
		t.Cleanup(func() { store.Close() })
		g, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("key", "id")})
		if errors.Is(err, driver.ErrInvalid) || err != nil && !strings.Contains(err.Error(), "as during a failover") {
			t.Fatalf("got %+v, %v; want an error that says that a failover may be the reason", g, err)
		}
		return err != nil
	})
	front.Reset()
	until(t, "a grant of the new primary", func() bool {
		g, err := store.Acquire(t.Context(), driver.Ask{Claim: exclusive("other", "id")})
		if errors.Is(err, driver.ErrInvalid) {
			t.Fatal(err)
		}
		return g.OK
	})
	if found := young.Must("KEYS", "holdfast:*:held:other").([]any); len(found) != 1 {
		t.Errorf("the new primary has the locks %q, want one", found)
	}
}

// TestOpenDuringFailover opens stores and acquires locks again and again, while Sentinels replace
// the primary. The old primary accepts writes for a while.
func TestOpenDuringFailover(t *testing.T) {
	t.Parallel()
	s := servers.StartSentinel(t).Calm()
	url := "redis://" + strings.Join(s.Addrs(), ",") + "?master=" + servers.MasterName
	ctx, stop := context.WithCancel(t.Context())
	var opening sync.WaitGroup
	for range 4 {
		opening.Go(func() {
			for ctx.Err() == nil {
				store, err := driver.Open(ctx, url)
				if err == nil {
					_, err = store.Acquire(ctx, driver.Ask{Claim: exclusive("key", "id")})
					store.Close()
				}
				if errors.Is(err, driver.ErrInvalid) {
					t.Error(err)
				}
			}
		})
	}
	s.Failover() // not twice: a Sentinel with old news may undo a second promotion
	stop()
	opening.Wait()
}
