package leases

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
	"github.com/holdfast-go/holdfast/mssqllock"
)

// A busy client has a row that other processes write all the time: meet runs before each
// statement that writes.
type busy struct {
	sqlstore.Client
	meet   func()
	writes int
}

func (b *busy) write(st sqlstore.Statement) {
	if strings.Contains(st.Text, "UPDATE ") || strings.Contains(st.Text, "INSERT ") {
		b.writes++
		b.meet()
	}
}

func (b *busy) Query(ctx context.Context, st sqlstore.Statement, each func(sqlstore.Scan) error) error {
	b.write(st)
	return b.Client.Query(ctx, st, each)
}

func (b *busy) Exec(ctx context.Context, st sqlstore.Statement) (sqlstore.Result, error) {
	b.write(st)
	return b.Client.Exec(ctx, st)
}

// On a key that many want, a claim joins the queue between each look at the row and the write
// that follows. The usual calls do without that look, and need no second try.
func TestCallsAmongMany(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		at := create(t, e.shared.URL())
		db, other := e.pool(t, at, 2)
		d := map[*engine]dialect.Dialect{postgres: dialect.Postgres, mariadb: dialect.MySQL}[e]
		callsAmongMany(t, table(at), db, other, d)
	})
	t.Run("SQL Server", func(t *testing.T) {
		t.Parallel()
		at := create(t, servers.AnySQLServer(t))
		db := must.Get(sql.Open("sqlserver", without(at, "table")))
		t.Cleanup(func() { db.Close() })
		callsAmongMany(t, table(at), db, must.Get(mssqllock.New(db, &mssqllock.Options{Table: table(at)})), dialect.SQLServer)
	})
}

// callsAmongMany begins again on a further key if the places in the queue have ended meanwhile.
func callsAmongMany(t *testing.T, table string, db *sql.DB, other store, d dialect.Dialect) {
	keys := 0
	servers.Until(t, "a machine on which the claims keep their places", func() bool {
		keys++
		key := fmt.Sprint("key ", keys)
		ctx, cancel := context.WithTimeout(t.Context(), waiter("").Alive())
		defer cancel()
		failures := amongMany(ctx, t, key, table, db, other, d)
		if ctx.Err() != nil {
			return false
		}
		for _, failure := range failures {
			t.Error(failure)
		}
		return true
	})
}

func amongMany(ctx context.Context, t *testing.T, key, table string, db *sql.DB, other store, d dialect.Dialect) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	joined := 0
	join := func() {
		joined++
		a := waiter(fmt.Sprint("joined ", joined))
		a.Key = key
		if g, err := other.Acquire(ctx, a); err != nil || g.OK {
			fail("claim %d was answered %+v, %v", joined, g, err)
		}
	}
	s, client := busyStore(t, db, d, table, join)
	holder, first, second := exclusive(key, "holder"), waiter("first"), waiter("second")
	first.Key, second.Key = key, key
	if g, err := other.Acquire(ctx, holder); err != nil || !g.OK {
		fail("the holder was answered %+v, %v", g, err)
	}
	join()
	call := func(name string, writes int, do func() error) {
		if ctx.Err() != nil {
			return // The last call may still go on, without its caller.
		}
		client.writes = 0
		if err := do(); ctx.Err() == nil && (err != nil || client.writes > writes) {
			fail("%s: %d writes, %v, want %d at most", name, client.writes, err, writes)
		}
	}
	acquire := func(a driver.Ask, want bool) func() error {
		return func() error {
			g, err := s.Acquire(ctx, a)
			if err == nil && g.OK != want {
				err = fmt.Errorf("%s was answered %+v", a.ID, g)
			}
			return err
		}
	}
	// A store that does not know the key first tries to acquire a free key.
	call("join", 2, acquire(first, false))
	call("break", 0, func() error { return other.Break(ctx, key, driver.PublicID("joined 2")) })
	call("join beside a tomb", 1, acquire(second, false))
	call("leave", 1, func() error { return s.Release(ctx, asks.Releases(first))[0] })
	call("acquire again", 1, acquire(holder, true))
	call("renew", 2, func() error { return s.Renew(ctx, asks.Renewals(holder))[0] })
	call("hand over", 2, func() error { return s.Release(ctx, asks.Releases(holder))[0] })
	succeed(t, s.Close()) // which waits for the last call
	return failures
}

func busyStore(t *testing.T, db *sql.DB, d dialect.Dialect, table string, meet func()) (*sqlstore.Store, *busy) {
	sqlDialect := must.Get(sqlstore.Engine(d))
	client := &busy{Client: sqlDialect.Client(db), meet: meet}
	s := must.Get(sqlstore.New(client, sqlDialect, &sqlstore.Options{Table: table}))
	t.Cleanup(func() { s.Close() })
	return s, client
}

func waiter(id string) driver.Ask {
	a := exclusive("key", id)
	a.Wait = true
	a.TTL = time.Minute
	return a
}
