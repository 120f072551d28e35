package memcachelock

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// occupied makes as many connections as a store may have, all idle.
func occupied(t *testing.T, s *Store) {
	t.Helper()
	server := s.servers[0]
	var all, inUse sync.WaitGroup
	inUse.Add(conns)
	for range conns {
		all.Go(func() {
			err := server.with(t.Context(), func(*conn) error {
				inUse.Done()
				inUse.Wait()
				return nil
			})
			if err != nil {
				t.Error(err)
				inUse.Done()
			}
		})
	}
	all.Wait()
	if n := len(server.idle); n != conns {
		t.Fatalf("%d idle connections, want %d", n, conns)
	}
}

// TestSilentCut cuts all connections that wait for their next use, and nobody
// says so. One call finds out; the next has a connection that works.
func TestSilentCut(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, shared.Addr())
	var cut atomic.Bool
	s := must.Get(New([]string{shared.Addr()}, &Options{Prefix: "cut:", Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !cut.Load() {
			addr = proxy.Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}))
	t.Cleanup(func() { s.Close() })
	claim := exclusive("key", "mine")
	granted(t, s, claim)
	occupied(t, s)

	proxy.Blackhole(true)
	cut.Store(true)
	servers.Until(t, "a call that finds out", func() bool { // A pause of this machine may end a call before it begins.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := renew(ctx, s, claim); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("renewed through what is cut: %v", err)
		}
		return len(s.servers[0].idle) == 0
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := renew(ctx, s, claim); err != nil {
		t.Errorf("renewed after it: %v", err)
	}
}

// TestCancelKeepsIdle cancels a call that waits for its answer: that says nothing
// about the other connections.
func TestCancelKeepsIdle(t *testing.T) {
	t.Parallel()
	proxy := servers.StartProxy(t, shared.Addr())
	s := must.Get(New([]string{proxy.Addr()}, nil))
	t.Cleanup(func() { s.Close() })
	occupied(t, s)

	proxy.Blackhole(true)
	ctx, cancel := context.WithCancel(t.Context())
	err := s.servers[0].with(ctx, func(c *conn) error {
		cancel()
		_, err := c.stats("stats")
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if n := len(s.servers[0].idle); n != conns-1 {
		t.Errorf("%d connections are left, want %d", n, conns-1)
	}
}
