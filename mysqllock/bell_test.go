package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// bellAt makes a bell on a server.
func bellAt(t testing.TB, m *servers.MariaDB) *bell {
	c := config(t, m.URL())
	c.InterpolateParams = true
	connector, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBell(sql.OpenDB(connector), "")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// hear makes a store that wakes waiters by a bell.
func hear(t testing.TB, m *servers.MariaDB, b sqlstore.Bell) driver.Store {
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, m.URL()+"?wake=false") }).(*Store)
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	return &waking{Store: s, rows: sqlstore.NewRinging(s.leases, b)}
}

// An insistent bell waits until the bell rings, however long that takes, so that a missing
// ring shows.
type insistent struct {
	*bell
	rings *atomic.Int64
}

func (i insistent) Hang(ctx context.Context) { i.bell.Hang(context.WithoutCancel(ctx)) }

func (i insistent) Wait(ctx context.Context, bell, name string, version int64) (heard sqlstore.Heard, err error) {
	for err == nil && heard == sqlstore.Nothing {
		heard, err = i.bell.Wait(ctx, bell, name, version)
	}
	if err == nil && heard == sqlstore.Rang {
		i.rings.Add(1)
	}
	return heard, err
}

func TestBellWakes(t *testing.T) {
	t.Parallel()
	own := shared.Database(t)
	var rings atomic.Int64
	h := drivertest.Harness{Lacks: drivertest.Notify, Open: func(t testing.TB) driver.Store {
		return hear(t, own, insistent{bellAt(t, own), &rings})
	}}
	rules := []string{"watch/release", "watch/everyone-in-turn", "watch/cancelled-before", "watch/cancelled-at-its-turn", "push/is-the-grant"}
	for _, failure := range drivertest.Check(t, h, rules...) {
		t.Error(failure)
	}
	if rings.Load() == 0 {
		t.Error("no bell has woken a waiter")
	}
}

// A deaf bell is that of a release without bells.
type deaf struct{}

func (deaf) To() string           { return "" }
func (deaf) Hang(context.Context) {}
func (deaf) Ring()                {}
func (deaf) Close() error         { return nil }
func (deaf) Wait(context.Context, string, string, int64) (sqlstore.Heard, error) {
	return 0, errors.New("no bell")
}

// TestBellBesideOlderRelease is about waiters with a bell behind claims without a bell, and
// the reverse.
func TestBellBesideOlderRelease(t *testing.T) {
	t.Parallel()
	own := shared.Database(t)
	var opened atomic.Int64
	h := drivertest.Harness{Lacks: drivertest.Notify, Open: func(t testing.TB) driver.Store {
		if opened.Add(1)%2 == 0 {
			return hear(t, own, deaf{})
		}
		return hear(t, own, bellAt(t, own))
	}}
	for _, failure := range drivertest.Check(t, h, "watch/release", "watch/everyone-in-turn", "watch/break") {
		t.Error(failure)
	}
}

func TestBellAnswers(t *testing.T) {
	t.Parallel()
	own := shared.Database(t)
	b, other := bellAt(t, own), bellAt(t, own)
	defer other.Close()
	s := hear(t, own, b)
	defer s.Close()
	claim := driver.Claim{Key: "key", ID: "id", Weight: 1, Limit: 1, TTL: 1e12}
	if g, err := s.Acquire(t.Context(), driver.Ask{Claim: claim}); err != nil || !g.OK {
		t.Fatalf("Acquire returned %+v and %v", g, err)
	}
	servers.Until(t, "the bell to be held", func() bool { return b.To() != "" })
	version, err := strconv.ParseInt(strings.TrimSpace(own.Must("SELECT version FROM holdfast WHERE name = 'key'")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	hears := func(want sqlstore.Heard, bell string, version int64) {
		t.Helper()
		if heard, err := other.Wait(t.Context(), bell, "key", version); err != nil || heard != want {
			t.Errorf("Wait returned %d and %v, want %d", heard, err, want)
		}
	}
	hears(sqlstore.Changed, b.To(), version+1)
	hears(sqlstore.NoBell, "nobody's bell", version)
	hears(sqlstore.Nothing, b.To(), version)

	const waiting = "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND state = 'User lock'"
	for how, ring := range map[string]func(){
		"a ring":                    b.Ring,
		"the end of the connection": func() { own.Must("KILL CONNECTION " + own.Must("SELECT is_used_lock('"+b.To()+"')")) },
	} {
		woke := make(chan error, maxWaits)
		for range maxWaits {
			go func() {
				_, err := insistent{other, new(atomic.Int64)}.Wait(t.Context(), b.To(), "key", version)
				woke <- err
			}()
		}
		servers.Until(t, "all waiters to wait", func() bool { return strings.TrimSpace(own.Must(waiting)) == strconv.Itoa(maxWaits) })
		ring()
		for range maxWaits {
			if err := <-woke; err != nil {
				t.Errorf("after %s, Wait returned %v", how, err)
			}
		}
		b.Ring() // notices that the connection has ended
		servers.Until(t, "the bell to be held again", func() bool {
			return b.To() != "" && strings.TrimSpace(own.Must("SELECT is_used_lock('"+b.To()+"') IS NOT NULL")) == "1"
		})
	}
}
