// Package edges puts stores at the ends of what their numbers can hold.
package edges

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/mysqllock"
	_ "github.com/holdfast-go/holdfast/pglock"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
)

// maxToken is the largest number whose neighbours a float64 can tell apart.
const maxToken = 1<<53 - 1

var (
	postgres *servers.Postgres
	mariadb  *servers.MariaDB
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(servers.Main(m, func(tb servers.TB) {
		postgres, mariadb = servers.AnyPostgres(tb, "fsync = off"), servers.AnyMariaDB(tb, "innodb_flush_method = nosync")
	}))
}

// An engine keeps its highest token where a statement can change it.
type engine struct {
	url string
	db  func(*testing.T) *sql.DB
	set string // the statement, for one number
	min int    // the fewest tokens that a grant takes
}

func engines(t *testing.T) map[string]engine {
	file := filepath.Join(t.TempDir(), "locks.db")
	return map[string]engine{
		"SQLite":           {"sqlite://" + file, sqliteDB(file), "UPDATE holdfast SET fence = %s", 1},
		"Postgres":         {postgres.URL(), postgresDB, "UPDATE holdfast SET fence = %s", 1},
		"MariaDB":          {mariadb.URL(), mariaDB, "UPDATE holdfast SET fence = %s", 1},
		"Postgres session": {with(t, postgres.URL(), "mode", "session"), postgresDB, "SELECT setval('holdfast_fence', %s)", 64},
		"MariaDB session":  {with(t, mariadb.URL(), "mode", "session"), mariaDB, "UPDATE holdfast_fence SET fence = %s", 64},
	}
}

// TestTokensEnd wants tokens that grow up to the end, and an error there. No number
// but one that a token can be is taken for the highest token.
func TestTokensEnd(t *testing.T) {
	for name, e := range engines(t) {
		t.Run(name, func(t *testing.T) {
			store, db := e.open(t), e.db(t)
			for _, floor := range []int64{maxToken - 300, maxToken - 65, maxToken - 2, maxToken - 1, maxToken, maxToken + 1, 1<<63 - 1, -1, -1 << 63} {
				claim := driver.Ask{Claim: driver.Claim{
					Key: "key", ID: fmt.Sprint(floor), Owner: "test", TTL: 30 * time.Second,
					Weight: driver.MaxWeight, Limit: driver.MaxWeight,
				}, Span: e.min}
				// The row of a key comes with its first claim.
				claim.ID += " before"
				if errs := give(t, store, claim); errs != nil && floor == maxToken-300 {
					t.Fatal(errs)
				}
				if _, err := db.ExecContext(t.Context(), fmt.Sprintf(e.set, fmt.Sprint(floor))); err != nil {
					if !strings.Contains(err.Error(), "out of bounds") {
						t.Fatal(err)
					}
					continue // The engine knows the ends.
				}
				last := uint64(max(floor, 0))
				for n := range 8 {
					claim.ID = fmt.Sprint(floor, " ", n)
					g, err := store.Acquire(t.Context(), claim)
					if err != nil {
						t.Logf("after %d: %v", last, err)
						if floor >= 0 && floor < maxToken-256 && n == 0 {
							t.Errorf("refused after %d: %v", last, err)
						}
						break
					}
					if floor < 0 || n == 7 {
						t.Errorf("from %d on it gave %d", floor, g.Fence)
					}
					if !g.OK || g.Fence <= last || g.Fence+uint64(max(g.Span, 1))-1 > maxToken {
						t.Fatalf("after %d it gave %+v", last, g)
					}
					last = g.Fence + uint64(max(g.Span, 1)) - 1
					claim.Span = max(256, e.min)
					for _, err := range store.Release(t.Context(), []driver.Release{{Claim: claim.Claim}}) {
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				// Nobody holds what was refused.
				if _, err := db.ExecContext(t.Context(), fmt.Sprintf(e.set, "1")); err != nil {
					t.Fatal(err)
				}
				claim.ID += " after"
				if err := give(t, store, claim); err != nil {
					t.Errorf("after the highest token was set right again: %v", err)
				}
			}
		})
	}
}

// give acquires a claim and releases it.
func give(t *testing.T, store driver.Store, c driver.Ask) error {
	g, err := store.Acquire(t.Context(), c)
	if err != nil || !g.OK {
		return errors.Join(err, errors.New("not granted"))
	}
	return errors.Join(store.Release(t.Context(), []driver.Release{{Claim: c.Claim}})...)
}

// open prepares the engine and opens its store.
func (e engine) open(t *testing.T) driver.Store {
	t.Helper()
	store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, e.url) })
	t.Cleanup(func() { store.Close() })
	if creator, ok := store.(driver.Creator); ok {
		if err := creator.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func with(t *testing.T, to, name, value string) string {
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

func sqliteDB(file string) func(*testing.T) *sql.DB {
	return func(t *testing.T) *sql.DB { return connect(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(60000)") }
}

func postgresDB(t *testing.T) *sql.DB { return connect(t, "pgx", postgres.URL()) }

func mariaDB(t *testing.T) *sql.DB {
	u, err := url.Parse(mariadb.URL())
	if err != nil {
		t.Fatal(err)
	}
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Passwd, _ = u.User.Password()
	return connect(t, "mysql", config.FormatDSN())
}

func connect(t *testing.T, engine, source string) *sql.DB {
	db, err := sql.Open(engine, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
