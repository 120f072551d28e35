package redislock

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/servers"
)

// A primary that was replaced takes itself for one when it comes back. So nobody connects
// to it, unless no Sentinel tells of another.
func TestConnectionsGoToThePrimary(t *testing.T) {
	t.Parallel()
	s := servers.StartSentinel(t).Calm()
	for _, sentinel := range s.Sentinels {
		sentinel.AddUser("asker", "secret", "~*", "&*", "+@all")
	}
	u, err := url.Parse("redis://" + strings.Join(s.Addrs(), ",") + "?sentinel_user=asker&sentinel_password=secret&master=" + servers.MasterName)
	if err != nil {
		t.Fatal(err)
	}
	opts, _, _, err := parse(u)
	if err != nil {
		t.Fatal(err)
	}
	opts.DialCtxFn = newDialer(u.Scheme).dial
	connect := toPrimary(opts)
	try := func(when, addr string, d *net.Dialer, allowed bool) {
		t.Helper()
		servers.Until(t, "the answer of a Sentinel in time", func() bool {
			began := time.Now()
			conn, err := connect(t.Context(), addr, d, nil)
			if err == nil {
				conn.Close()
			}
			right := (err == nil) == allowed
			if !right && time.Since(began) < glance {
				t.Errorf("%s: %v", when, err)
				return true
			}
			return right
		})
	}
	old := s.Primary().Addr()
	try("the primary", old, &opts.Dialer, true)
	primary := s.Failover().Addr()
	try("the old one", old, &opts.Dialer, false)
	try("the new one", primary, &opts.Dialer, true)
	try("a Sentinel", s.Addrs()[0], &opts.Sentinel.Dialer, true)
	s.Sentinels[0].Kill()
	s.Sentinels[1].Kill()
	try("the old one, says the last Sentinel", old, &opts.Dialer, false)
	s.Sentinels[2].Kill()
	try("the old one, without a Sentinel", old, &opts.Dialer, true)
}

// TestHungSentinel has a Sentinel hang until a connection is made: another has named the
// primary, so the connection does not wait.
func TestHungSentinel(t *testing.T) {
	t.Parallel()
	s := servers.StartSentinel(t).Calm()
	done := make(chan struct{})
	defer close(done)
	plain := newDialer("redis").dial
	connect := toPrimary(rueidis.ClientOption{
		InitAddress: append(s.Addrs(), "hangs"),
		Sentinel:    rueidis.SentinelOption{MasterSet: servers.MasterName, Dialer: forSentinels},
		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, config *tls.Config) (net.Conn, error) {
			if addr == "hangs" {
				<-done
				return nil, errClosed
			}
			return plain(ctx, addr, d, config)
		},
	})
	servers.Insist(t, func(ctx context.Context) (any, error) {
		conn, err := connect(ctx, s.Primary().Addr(), &net.Dialer{}, nil)
		if err == nil {
			conn.Close()
		}
		return nil, err
	})
}
