package pglock

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/detached"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A caller that gives up while the pool checks an idle connection does not end the
// connection.
func TestLeaveWhileThePoolAsks(t *testing.T) {
	proxy := servers.StartProxy(t, server.Addr())
	at, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	at.Host = proxy.Addr()
	config, err := pgxpool.ParseConfig(at.String())
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s := must.Get(New(pool, &Options{Table: "leave_while_the_pool_asks"}))
	defer s.Close()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	ask := driver.Ask{Claim: driver.Claim{Key: "key", ID: "id", Weight: 1, Limit: 1, TTL: time.Minute}}
	acquire := func(ctx context.Context) (driver.Grant, error) { return s.Acquire(ctx, ask) }
	started := time.Now()
	for tested := false; !tested; {
		if time.Since(started) > sessiontest.Patience {
			unproved.Logf(t, "that a caller that gives up costs no connection")
			return
		}
		servers.Insist(t, acquire)
		before, began, touched := proxy.Accepted(), time.Now(), proxy.Replies.Touched()
		proxy.Replies.Hold(true)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if _, err := acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a silent server has answered: %v", err)
		}
		cancel()
		proxy.Replies.Hold(false)
		servers.Insist(t, acquire)
		// Unless the machine is too slow for it to be asked, or to answer in time.
		tested = proxy.Replies.Touched() > touched && time.Since(began) < detached.Grace
		if n := proxy.Accepted() - before; n > 0 && tested {
			t.Errorf("it has cost %d connections", n)
		}
	}
}
