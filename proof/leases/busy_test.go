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
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// A busy client has a row that other processes write all the time: meet runs before each
// statement that writes.
type busy struct {
	sqlstore.Client
	meet   func()
	writes int
}

func (b *busy) write(st sqlstore.Statement) {
	if !strings.HasPrefix(strings.TrimSpace(st.Text), "SELECT") {
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
		joined := 0
		join := func() {
			t.Helper()
			joined++
			g, err := other.Acquire(t.Context(), waiter(fmt.Sprint("joined ", joined)))
			succeed(t, err)
			if g.OK {
				t.Errorf("claim %d was granted the key", joined)
			}
		}
		s, client := busyStore(t, db, d, table(at), join)
		holder, first := exclusive("key", "holder"), waiter("first")
		must.Get(other.Acquire(t.Context(), holder))
		join()
		call := func(name string, writes int, do func() error) {
			t.Helper()
			client.writes = 0
			succeed(t, do())
			if client.writes > writes {
				t.Errorf("%s: %d writes, want %d at most", name, client.writes, writes)
			}
		}
		acquire := func(a driver.Ask, want bool) func() error {
			return func() error {
				g, err := s.Acquire(t.Context(), a)
				if err == nil && g.OK != want {
					err = fmt.Errorf("%s was answered %+v", a.ID, g)
				}
				return err
			}
		}
		// A store that does not know the key first tries to acquire a free key.
		call("join", 2, acquire(first, false))
		call("leave", 1, func() error { return s.Release(t.Context(), asks.Releases(first))[0] })
		call("acquire again", 1, acquire(holder, true))
		call("renew", 2, func() error { return s.Renew(t.Context(), asks.Renewals(holder))[0] })
		call("hand over", 2, func() error { return s.Release(t.Context(), asks.Releases(holder))[0] })
	})
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
