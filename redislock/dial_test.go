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
	"github.com/holdfast-go/holdfast/internal/bounded"
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

// opened returns a store of a server, which has just answered.
func opened(t *testing.T, server *servers.Redis) *Store {
	t.Helper()
	u, err := url.Parse(server.URL() + "?dial_timeout=1m")
	if err != nil {
		t.Fatal(err)
	}
	store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return open(ctx, u) }).(*Store)
	t.Cleanup(func() { store.Close() })
	return store
}

// limited returns a context that only its limit ends.
func limited(limit time.Duration) *bounded.Context {
	return new(bounded.Context).Start(context.Background(), time.Now().Add(limit))
}

var echo = Command{Words: []string{"ECHO", "text"}, ReadOnly: true}

// A command whose time is over is not sent, and costs no connection.
func TestTooLate(t *testing.T) {
	server := servers.StartRedis(t)
	conn := opened(t, server).conn
	answers := func() {
		t.Helper()
		ctx := limited(time.Minute)
		defer ctx.End()
		if r := conn.Do(ctx, echo)[0]; r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	answers()
	dials := conn.Dials()
	ctx := limited(0)
	defer ctx.End()
	if r := conn.Do(ctx, echo)[0]; !errors.Is(r.Err, context.DeadlineExceeded) {
		t.Errorf("%+v, want the end of the context", r)
	}
	answers()
	stats, _ := server.Must("INFO", "commandstats").(string)
	if n := conn.Dials() - dials; n > 0 || !strings.Contains(stats, "cmdstat_echo:calls=2,") {
		t.Errorf("%d new connections; want none, and 2 calls of ECHO in\n%s", n, stats)
	}
}

// A call ends with its context, also while a different call makes a connection.
func TestAnotherConnects(t *testing.T) {
	server := servers.StartRedis(t)
	conn := opened(t, server).conn
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, conn.Do(ctx, echo)[0].Err })
	dials := conn.Dials()
	server.KillClients()
	server.Pause() // accepts connections, but does not answer
	defer server.Resume()
	connected := make(chan Reply, 1)
	go func() {
		ctx := limited(time.Minute)
		defer ctx.End()
		connected <- conn.Do(ctx, echo)[0]
	}()
	servers.Until(t, "a connection to be made", func() bool { return conn.Dials() > dials })
	ctx := limited(50 * time.Millisecond)
	defer ctx.End()
	if r := conn.Do(ctx, echo)[0]; !errors.Is(r.Err, context.DeadlineExceeded) {
		t.Errorf("%+v, want the end of the context", r)
	}
	select {
	case r := <-connected:
		t.Errorf("a call has waited for a connection until %+v", r)
	default:
	}
}
