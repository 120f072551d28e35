package redislock

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestCloseWhileConnecting closes a store while its client makes a connection, since the
// servers have ended those that it had. The client does not close that one.
func TestCloseWhileConnecting(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		r := servers.StartRedis(t)
		closeWhileConnecting(t, r.URL(), r)
	})
	t.Run("Sentinel", func(t *testing.T) {
		t.Parallel()
		s := servers.StartSentinel(t).Calm()
		closeWhileConnecting(t, "redis://"+strings.Join(s.Addrs(), ",")+"?master="+servers.MasterName, s.Nodes...)
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		c := servers.StartCluster(t)
		closeWhileConnecting(t, "redis://"+strings.Join(c.Addrs(), ","), c.Nodes...)
	})
}

func closeWhileConnecting(t *testing.T, from string, nodes ...*servers.Redis) {
	u, err := url.Parse(from)
	if err != nil {
		t.Fatal(err)
	}
	store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return open(ctx, u) }).(*Store)
	defer store.Close()
	for _, node := range nodes {
		node.KillClients()
		node.Pause() // accepts connections, but does not answer
		defer node.Resume()
	}
	dials := store.conn.Dials()
	c := driver.Claim{Key: "key", ID: "id", Weight: 1, Limit: 1, TTL: time.Minute}
	var caller sync.WaitGroup
	caller.Go(func() {
		for err := error(nil); !errors.Is(err, errClosed); {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			_, err = store.Acquire(ctx, driver.Ask{Claim: c})
			cancel()
		}
	})
	servers.Until(t, "a connection to be made", func() bool { return store.conn.Dials() > dials })
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	for _, node := range nodes {
		node.Resume()
	}
	caller.Wait()
	for _, node := range nodes {
		servers.Until(t, "the connections of the store to end", func() bool {
			clients, _ := node.Must("CLIENT", "LIST").(string)
			return !strings.Contains(clients, " name=holdfast ")
		})
	}
}
