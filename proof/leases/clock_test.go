package leases

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestClockGoesBack sets the clock of the server back by more than a lease has left. It
// ends no lease, and tokens count on. MariaDB aborts.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	clock := servers.StartClock(t)
	at := create(t, servers.StartPostgres(clock, postgres.nosync).URL())
	a, b := open(t, at), open(t, at)
	first, second := exclusive("key", "first"), exclusive("key", "second")
	acquire := func(s store, c driver.Ask, want bool) driver.Grant {
		t.Helper()
		g, err := s.Acquire(t.Context(), c)
		succeed(t, err)
		if g.OK != want {
			t.Fatalf("%s was answered %+v, want a grant: %v", c.ID, g, want)
		}
		return g
	}
	earlier := acquire(a, first, true)
	clock.Step(-time.Hour)
	acquire(b, second, false)
	for _, err := range a.Renew(t.Context(), asks.Renewals(first)) {
		succeed(t, err)
	}
	acquire(b, second, false)
	for _, err := range a.Release(t.Context(), asks.Releases(first)) {
		succeed(t, err)
	}
	if later := acquire(b, second, true); later.Fence <= earlier.Fence {
		t.Errorf("token %d came after %d", later.Fence, earlier.Fence)
	}
}

// Check warns of a transaction that has been open for hours, if the user may see the age of the
// transaction. A transaction without a snapshot keeps no row, however old, and VACUUM keeps no row
// of another table.
func TestOldTransaction(t *testing.T) {
	t.Parallel()
	clock := servers.StartClock(t)
	s := servers.StartPostgres(clock, postgres.nosync)
	at := create(t, s.URL())
	as := func(user string) string {
		if user == "postgres" {
			return at
		}
		return strings.Replace(at, "postgres:secret@", user+":"+user+"@", 1)
	}
	for _, user := range []string{"app", "stranger"} {
		s.Must(fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'; GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %[1]s", user, servers.Verifier(user), table(at)))
	}
	begin := func(statement string) {
		t.Helper()
		conn := must.Get(pgx.Connect(t.Context(), without(as("app"), "table")))
		t.Cleanup(func() { conn.Close(context.Background()) })
		must.Get(conn.Exec(t.Context(), "BEGIN; "+statement))
	}
	warned := func(user string) bool {
		t.Helper()
		warnings, err := open(t, as(user)).Check(t.Context())
		succeed(t, err)
		return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "of user app, has been open for 2 h") })
	}
	begin("SELECT 1")
	vacuum := must.Get(pgx.Connect(t.Context(), without(as("app"), "table")))
	must.Get(vacuum.Exec(t.Context(), "CREATE TEMP TABLE big AS SELECT generate_series(1, 100000); SET vacuum_cost_delay = 100; SET vacuum_cost_limit = 1"))
	var vacuuming sync.WaitGroup
	t.Cleanup(vacuuming.Wait)
	vacuuming.Go(func() {
		defer vacuum.Close(context.Background())
		vacuum.Exec(t.Context(), "VACUUM big")
	})
	old := "FROM pg_stat_activity JOIN pg_stat_progress_vacuum USING (pid) WHERE backend_xmin IS NOT NULL"
	servers.Until(t, "the table to be vacuumed", func() bool { return s.Must("SELECT count(*) "+old) == "1" })
	clock.Step(2 * time.Hour)
	if warned("app") {
		t.Error("a warning of transactions that keep no rows")
	}
	if s.Must("SELECT count(*) "+old+" AND xact_start < clock_timestamp() - interval '1 hour'") != "1" {
		t.Error("the table is no longer vacuumed, or the transaction is young")
	}
	begin("SELECT txid_current()")
	clock.Step(4 * time.Hour)
	for user, want := range map[string]bool{"app": true, "postgres": true, "stranger": false} {
		if got := warned(user); got != want {
			t.Errorf("Check warns %s: %t, want %t", user, got, want)
		}
	}
}
