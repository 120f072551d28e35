package mssqllock

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/doorbell"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// bell makes a bell on a server.
func (s *server) bell(t testing.TB) *doorbell.Bell {
	t.Helper()
	u := must.Get(parse(must.Get(url.Parse(s.url))))
	return must.Get(newBell(u.config, ""))
}

// An insistent bell repeats a wait that has ended without news, or in a time-out, so that a missing ring
// shows.
type insistent struct {
	*doorbell.Bell
	rings *atomic.Int64
}

func (i insistent) Hang(ctx context.Context, _ time.Duration) {
	i.Bell.Hang(context.WithoutCancel(ctx), time.Hour)
}

func (i insistent) Wait(ctx context.Context, bell string, name any, version int64) (heard sqlstore.Heard, err error) {
	for again := true; again; again = ctx.Err() == nil && (err == nil && heard == sqlstore.Nothing || errors.Is(err, context.DeadlineExceeded)) {
		heard, err = i.Bell.Wait(ctx, bell, name, version)
	}
	if err == nil && heard == sqlstore.Rang {
		i.rings.Add(1)
	}
	return heard, err
}

// wait is Bell.Wait, again if the server was slow to connect.
func wait(ctx context.Context, b *doorbell.Bell, bell string, version int64) (heard sqlstore.Heard, err error) {
	for {
		heard, err = b.Wait(ctx, bell, []byte("key"), version)
		if err == nil || ctx.Err() != nil || errors.Is(err, sql.ErrConnDone) || strings.Contains(err.Error(), "is closed") {
			return heard, err
		}
	}
}

// hear waits until a bell rings.
func hear(ctx context.Context, b *doorbell.Bell, bell string, version int64) (heard sqlstore.Heard, err error) {
	for heard == sqlstore.Nothing && err == nil {
		heard, err = wait(ctx, b, bell, version)
	}
	return heard, err
}

// TestWakes runs the rules about waiters with bells, on stores that share the connections for
// rows.
func TestWakes(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	own.prepared(t, "&wake=false")
	var rings atomic.Int64
	h := drivertest.Harness{Lacks: drivertest.Notify, Open: func(t testing.TB) driver.Store {
		return newWaking(must.Get(New(own.db, nil)), insistent{own.bell(t), &rings})
	}}
	rules := []string{"watch/release", "watch/everyone-in-turn", "watch/cancelled-before", "watch/cancelled-at-its-turn", "push/is-the-grant"}
	for _, failure := range drivertest.Check(t, h, rules...) {
		t.Error(failure)
	}
	servers.Until(t, "a bell that wakes a waiter", func() bool { // A slow wait finds the key free.
		if rings.Load() > 0 || t.Failed() {
			return true
		}
		for _, failure := range drivertest.Check(t, h, "watch/release") {
			t.Error(failure)
		}
		return false
	})
}

// TestBellAnswers waits on one connection for more refused waits than Babelfish survives without
// the remedy.
func TestBellAnswers(t *testing.T) {
	t.Parallel()
	own := aServer(t)
	s := own.prepared(t, "&wake=false")
	b, other := own.bell(t), own.bell(t)
	defer b.Close()
	defer other.Close()
	claim := driver.Claim{Key: "key", ID: "id", Weight: 1, Limit: 1, TTL: time.Hour}
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: claim}); err != nil || !g.OK {
		t.Fatalf("Acquire returned %+v and %v", g, err)
	}
	b.Hang(t.Context(), time.Minute)
	servers.Until(t, "the bell to be held", func() bool { return b.To() != "" })
	var version int64
	if err := own.db.QueryRowContext(t.Context(), "SELECT version FROM holdfast WHERE name = 0x"+hexOf("key")).Scan(&version); err != nil {
		t.Fatal(err)
	}
	hears := func(want sqlstore.Heard, bell string, version int64) {
		t.Helper()
		if heard, err := wait(t.Context(), other, bell, version); err != nil || heard != want {
			t.Errorf("Wait returned %d and %v, want %d", heard, err, want)
		}
	}
	hears(sqlstore.Changed, b.To(), version+1)
	hears(sqlstore.NoBell, "nobody's bell", version)
	for range 7 {
		hears(sqlstore.Nothing, b.To(), version)
	}
	woke := make(chan sqlstore.Heard, doorbell.MaxWaits)
	for range doorbell.MaxWaits {
		go func() {
			heard, err := hear(t.Context(), other, b.To(), version)
			if err != nil {
				t.Errorf("Wait returned %v", err)
			}
			woke <- heard
		}()
	}
	woken := 0
	servers.Until(t, "all waiters to be woken", func() bool {
		b.Ring()
		select {
		case heard := <-woke:
			// A wait that begins during a ring finds no bell.
			if woken++; heard != sqlstore.Rang && heard != sqlstore.NoBell {
				t.Errorf("a waiter heard %d, want %d", heard, sqlstore.Rang)
			}
		default:
		}
		return woken == doorbell.MaxWaits
	})
}

func hexOf(text string) (digits string) {
	for _, b := range []byte(text) {
		digits += strconv.FormatInt(int64(b)+256, 16)[1:]
	}
	return digits
}
