package memcachelock

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// rewriting is a proxy that changes what clients send.
func rewriting(t *testing.T, change func(sent string) string) (addr string) {
	t.Helper()
	return servers.StartStranger(t, func(client net.Conn) {
		server, err := net.Dial("tcp", shared.Addr())
		if err != nil {
			return // as if the server had hung up
		}
		defer server.Close()
		go func() {
			defer server.Close()
			for b := make([]byte, 1<<16); ; {
				n, err := client.Read(b)
				if err != nil {
					return
				}
				if _, err := io.WriteString(server, change(string(b[:n]))); err != nil {
					return
				}
			}
		}()
		io.Copy(client, server)
	})
}

// TestRefusesLiars stands before servers that ignore a condition, and before several servers.
func TestRefusesLiars(t *testing.T) {
	t.Parallel()
	add := rewriting(t, func(sent string) string {
		return strings.ReplaceAll(sent, "add holdfast:@canary", "set holdfast:@canary")
	})
	swap := regexp.MustCompile(` C[0-9]+`)
	cas := rewriting(t, func(sent string) string { return swap.ReplaceAllString(sent, "") })
	other := servers.StartMemcached(t)
	newStore(t, nil, other) // The first seconds of the server are over.
	several := servers.StartBalancer(t, shared.Addr(), other.Addr())
	for addr, want := range map[string]string{
		add:     "of two connections that add the same item, both have stored it",
		cas:     "a write with the wrong number for compare-and-swap was carried out",
		several: "the address leads to several servers",
	} {
		if err := sessiontest.Refused(t, "memcached://"+addr); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), addr+" does not exclude: "+want) {
			t.Errorf("got the error %v, want an ErrInvalid with %q", err, want)
		}
		servers.Until(t, "a refusal by a store of New", func() bool {
			s := must.Get(New([]string{addr}, nil))
			defer s.Close()
			began := time.Now()
			g, err := s.Acquire(t.Context(), exclusive("key", "id"))
			if g.OK && time.Since(began) < canaryWait {
				t.Fatalf("a store of New granted a lock of %s", addr)
			}
			return errors.Is(err, driver.ErrInvalid)
		})
	}
}

// TestOtherServerTakesOver has the first connection lead to another server than all later ones, as
// when a server was just replaced. That is an error, but no refusal.
func TestOtherServerTakesOver(t *testing.T) {
	t.Parallel()
	addrs := slices.Concat([]string{servers.StartMemcached(t).Addr()}, slices.Repeat([]string{shared.Addr()}, 1000))
	s := must.Get(New([]string{servers.StartBalancer(t, addrs...)}, nil))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := exclusive("canary/replaced", "id")
	g, err := s.Acquire(ctx, ask)
	if g.OK || err == nil || errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "as during a failover: ") {
		t.Errorf("got %+v, %v; want an error that says that a failover may be the reason", g, err)
	}
	if g, err := s.Acquire(ctx, ask); err != nil || !g.OK {
		t.Errorf("then got %+v, %v; want a grant", g, err)
	}
}

// TestSecondConnectionHangs leaves time for the lock.
func TestSecondConnectionHangs(t *testing.T) {
	t.Parallel()
	var dials atomic.Int64
	s := must.Get(New([]string{shared.Addr()}, &Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if g, err := s.Acquire(ctx, exclusive("canary/hangs", "id")); err != nil || !g.OK {
		t.Errorf("got %+v, %v; want a grant", g, err)
	}
}

// A deaf connection loses the requests of canaries.
type deaf struct{ net.Conn }

func (d deaf) Write(b []byte) (n int, err error) {
	if strings.Contains(string(b), "add holdfast:@canary") {
		return len(b), nil
	}
	return d.Conn.Write(b)
}

// TestSecondConnectionIsDeaf leaves time for the lock, though the second connection was made.
func TestSecondConnectionIsDeaf(t *testing.T) {
	t.Parallel()
	var dials atomic.Int64
	s := must.Get(New([]string{shared.Addr()}, &Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil && dials.Add(1) > 1 {
			conn = deaf{conn}
		}
		return conn, err
	}}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if g, err := s.Acquire(ctx, exclusive("canary/deaf", "id")); err != nil || !g.OK {
		t.Errorf("got %+v, %v; want a grant", g, err)
	}
}

// TestEvidenceStays has a server refused that does not exclude, and then make no second connection:
// a canary that shows nothing is no proof.
func TestEvidenceStays(t *testing.T) {
	t.Parallel()
	addr := rewriting(t, func(sent string) string {
		return strings.ReplaceAll(sent, "add holdfast:@canary", "set holdfast:@canary")
	})
	var left atomic.Int64 // dials
	left.Store(1000)
	s := must.Get(New([]string{addr}, &Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if left.Add(-1) < 0 {
			return nil, errors.New("no further connection")
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	servers.Until(t, "a refusal", func() bool { // A pause of this machine may cut off a canary.
		_, err := s.Acquire(ctx, exclusive("canary/evidence", "id"))
		s.servers[0].closeIdle()
		return errors.Is(err, driver.ErrInvalid)
	})
	left.Store(1)
	if g, err := s.Acquire(ctx, exclusive("canary/evidence", "other")); !errors.Is(err, driver.ErrInvalid) || g.OK {
		t.Errorf("without a second connection: %+v, %v; want the refusal", g, err)
	}
}

// TestProvesLater has no second connection at first: the connection of the first call proves the
// server for a later call.
func TestProvesLater(t *testing.T) {
	t.Parallel()
	addr := rewriting(t, func(sent string) string {
		return strings.ReplaceAll(sent, "add holdfast:@canary", "set holdfast:@canary")
	})
	var dials atomic.Int64
	s := must.Get(New([]string{addr}, &Options{Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if dials.Add(1) == 2 {
			return nil, errors.New("no second connection yet")
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}))
	defer s.Close()
	granted(t, s, exclusive("canary/later", "id"))
	servers.Until(t, "a refusal", func() bool {
		_, err := s.Acquire(t.Context(), exclusive("canary/later", "id"))
		return errors.Is(err, driver.ErrInvalid)
	})
}

// TestCanaryLeavesNothing beside the first lock.
func TestCanaryLeavesNothing(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	newStore(t, nil, m) // The first seconds of the server are over.
	var left int
	var proved bool
	unproved.InTime(t, canaryWait/2, func() {
		before := m.Stat("curr_items")
		s := must.Get(New([]string{m.Addr()}, nil))
		defer s.Close()
		granted(t, s, exclusive(rand.Text(), "id"))
		left, proved = m.Stat("curr_items")-before, s.servers[0].proved.Load()
	})
	if left != 1 || !proved {
		t.Errorf("the first lock left %d items, want 1; the server was proved: %v", left, proved)
	}
}
