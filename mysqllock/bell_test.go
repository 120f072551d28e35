package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/doorbell"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// bellAt makes a bell on a server.
func bellAt(t testing.TB, m *servers.MariaDB) *doorbell.Bell {
	return must.Get(newBell(config(t, m.URL()), ""))
}

// hear makes a store that wakes waiters by a bell.
func hear(t testing.TB, m *servers.MariaDB, b sqlstore.Bell) driver.Store {
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, m.URL()+"?wake=false") }).(*Store)
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	return &waking{Store: s, rows: sqlstore.NewRinging(s.leases, b)}
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

// A deaf bell is that of a release without bells.
type deaf struct{}

func (deaf) To() string                          { return "" }
func (deaf) Hang(context.Context, time.Duration) {}
func (deaf) Ring()                               {}
func (deaf) Close() error                        { return nil }
func (deaf) Wait(context.Context, string, any, int64) (sqlstore.Heard, error) {
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
		heard := servers.Insist(t, func(ctx context.Context) (sqlstore.Heard, error) { return other.Wait(ctx, bell, "key", version) })
		if heard != want {
			t.Errorf("Wait returned %d, want %d", heard, want)
		}
	}
	hears(sqlstore.Changed, b.To(), version+1)
	hears(sqlstore.NoBell, "nobody's bell", version)
	hears(sqlstore.Nothing, b.To(), version)

	const waiting = "SELECT count(*) FROM information_schema.processlist WHERE db = database() AND state = 'User lock'"
	for how, ring := range map[string]func(b *doorbell.Bell, name string){
		"a ring": func(b *doorbell.Bell, _ string) { b.Ring() },
		"the end of the connection": func(_ *doorbell.Bell, name string) {
			_, _ = own.Do("KILL CONNECTION " + own.Must("SELECT is_used_lock('"+name+"')")) // It may have ended.
		},
	} {
		b := bellAt(t, own) // A bell that has rung rings again soon.
		defer b.Close()
		b.Hang(t.Context(), time.Hour)
		servers.Until(t, "the bell to be held", func() bool { return b.To() != "" })
		name, woke := b.To(), make(chan error, doorbell.MaxWaits)
		for range doorbell.MaxWaits {
			go func() {
				_, err := insistent{other, new(atomic.Int64)}.Wait(t.Context(), name, "key", version)
				woke <- err
			}()
		}
		servers.Until(t, "all waiters to wait", func() bool { return strings.TrimSpace(own.Must(waiting)) == strconv.Itoa(doorbell.MaxWaits) })
		// A waiter may miss both rings of a Ring, as its wait in the server has just ended.
		servers.Until(t, "all waiters to be woken by "+how, func() bool {
			ring(b, name)
			return len(woke) == doorbell.MaxWaits
		})
		for range doorbell.MaxWaits {
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

// TestBellSilence: the server ends the connections of a bell after the same silence, whatever
// its own limit is.
func TestBellSilence(t *testing.T) {
	t.Parallel()
	db := must.Get(bellDatabase(config(t, servers.StartMariaDB(t, "innodb_flush_method = nosync", "wait_timeout = 5").URL())))
	defer db.Close()
	var limit float64
	if err := db.QueryRowContext(t.Context(), "SELECT @@wait_timeout").Scan(&limit); err != nil || limit != doorbell.Silence.Seconds() {
		t.Errorf("the server ends a connection after %vs of silence, %v, want %v", limit, err, doorbell.Silence)
	}
}

// TestBellUncommitted: a waiter is not granted what the server has not committed, though the
// isolation level shows it.
func TestBellUncommitted(t *testing.T) {
	t.Parallel()
	m := servers.StartMariaDB(t, "innodb_flush_method = nosync", "transaction_isolation = READ-UNCOMMITTED")
	holding, waiting := hear(t, m, bellAt(t, m)), hear(t, m, bellAt(t, m))
	defer holding.Close()
	defer waiting.Close()
	claim := func(id string) driver.Ask {
		return driver.Ask{Wait: true, Claim: driver.Claim{Key: "key", ID: id, Weight: 1, Limit: 1, TTL: time.Minute}}
	}
	acquire := func(s driver.Store, id string, want bool) {
		t.Helper()
		if g, err := s.Acquire(t.Context(), claim(id)); err != nil || g.OK != want {
			t.Fatalf("Acquire returned %+v and %v", g, err)
		}
	}
	acquire(holding, "holder", true)
	woke := make(chan driver.Grant, 1)
	stop, err := waiting.(driver.Watcher).Watch(t.Context(), claim("waiter").Claim, func(g driver.Grant) {
		select {
		case woke <- g:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	acquire(waiting, "waiter", false)

	// The commit of a Break hangs, as during a backup, until the Break is killed.
	db := sql.OpenDB(must.Get(mysql.NewConnector(config(t, m.URL()))))
	defer db.Close()
	backup, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer backup.Close()
	run := func(statement string) {
		t.Helper()
		if _, err := backup.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	run("BACKUP STAGE START")
	run("BACKUP STAGE BLOCK_COMMIT")
	shown, err := holding.(driver.Inspector).Holders(t.Context(), "key")
	if err != nil || len(shown) == 0 {
		t.Fatal(shown, err)
	}
	broken := make(chan error, 1)
	go func() { broken <- holding.(driver.Inspector).Break(t.Context(), "key", shown[0].ID) }()
	if g := <-woke; g.OK {
		t.Errorf("the waiter is granted %+v, which is not committed", g)
	}
	const breaking = "SELECT id FROM information_schema.processlist WHERE info LIKE 'UPDATE%' AND state = 'Waiting for backup lock' LIMIT 1"
	hung := false
	// A statement that has waited for long is sent again, so it may be gone when it is killed.
	servers.Until(t, "the Break to be killed", func() bool {
		if id := strings.TrimSpace(m.Must(breaking)); id != "" {
			hung = true
			const unknownThread = 1094
			var refused *mysql.MySQLError
			if _, err := backup.ExecContext(t.Context(), "KILL "+id); err != nil && !(errors.As(err, &refused) && refused.Number == unknownThread) {
				t.Fatal(err)
			}
		}
		select {
		case err := <-broken:
			t.Log("the Break returned ", err)
			return true
		default:
			return false
		}
	})
	if !hung {
		t.Error("the commit of the Break did not hang")
	}
	run("BACKUP STAGE END")
	if errs := holding.Renew(t.Context(), []driver.Renewal{{Claim: claim("holder").Claim}}); errs[0] == nil {
		acquire(waiting, "waiter", false)
	}
}
