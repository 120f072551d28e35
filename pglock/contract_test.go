package pglock

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var server *servers.Postgres

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) {
		server = servers.AnyPostgres(tb, "max_connections = 400", "fsync = off", "deadlock_timeout = 100ms")
		server.Must(must.Get(NewSession(must.Get(pgx.ParseConfig(server.URL())), nil)).Schema()[0])
	}))
}

// Server is the server of all tests that do it no harm.
func Server() *servers.Postgres { return server }

// linked is a proxy before the server, and the server's URL through it.
func linked(t testing.TB) (p *servers.Proxy, through string) {
	t.Helper()
	p = servers.StartProxy(t, server.Addr())
	return p, strings.Replace(server.URL(), server.Addr(), p.Addr(), 1)
}

// rows is a table of the server, to read and write by SQL.
func rows(s driver.Store, table string) goldentest.Table {
	return goldentest.Table{Store: s, Name: table, Exec: func(statement string) { server.Must(statement) }, Query: server.Must}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	name := "golden_" + strings.ToLower(rand.Text())
	s := opened(t, server.URL()+"&table="+name)
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	rows(s.(*Store), name).Golden(t)
}

// pools returns three pools, as three processes have them, to be shared by many stores. To
// PostgreSQL a connection is a process, which costs more than most rules.
func pools(t testing.TB) (next func() *pgxpool.Pool) {
	t.Helper()
	var all [3]*pgxpool.Pool
	for i := range all {
		all[i] = servers.Insist(t, func(ctx context.Context) (*pgxpool.Pool, error) {
			return connect(ctx, must.Get(pgxpool.ParseConfig(server.URL()+"&pool_max_conns=20")))
		})
		t.Cleanup(all[i].Close)
	}
	var last atomic.Uint64
	return func() *pgxpool.Pool { return all[last.Add(1)%uint64(len(all))] }
}

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is silent.
func TestContract(t *testing.T) {
	// The records of a newer release disturb a rule that reads all keys.
	table := func(t testing.TB) string {
		if strings.Contains(t.Name(), "/format/") {
			return "contract_newer"
		}
		return "contract"
	}
	pool := pools(t)
	open := func(table string) *Store { return must.Get(New(pool(), &Options{Table: table})) }
	for _, table := range []string{"contract", "contract_newer"} {
		s := open(table)
		servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
		s.Close()
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Store {
			if testing.Short() {
				return open(table(t))
			}
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) { // a pool of its own
				return driver.Open(ctx, server.URL()+"&table="+table(t))
			})
		},
		Newer: func(t testing.TB, key string) func() string { return rows(nil, table(t)).Newer(key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p, url := linked(t)
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
				return driver.Open(ctx, url+"&table="+table(t))
			}), p
		},
	})
}
