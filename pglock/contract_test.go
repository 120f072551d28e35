package pglock

import (
	"context"
	"crypto/rand"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var server *servers.Postgres

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) {
		server = servers.AnyPostgres(tb, "max_connections = 400", "fsync = off", "deadlock_timeout = 100ms")
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

// A table is that of one rule, which its first client makes.
type table struct {
	name string
	once sync.Once
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

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is silent.
func TestContract(t *testing.T) {
	var tables sync.Map
	open := func(t testing.TB, url string) driver.Store {
		made, _ := tables.LoadOrStore(t, &table{name: "t_" + rand.Text()})
		own := made.(*table)
		s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			return driver.Open(ctx, url+"&table="+own.name)
		})
		own.once.Do(func() {
			servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(*Store).Create(ctx) })
		})
		return s
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Store { return open(t, server.URL()) },
		Newer: func(t testing.TB, key string) func() string {
			made, _ := tables.Load(t)
			return rows(nil, `"`+made.(*table).name+`"`).Newer(key)
		},
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p, url := linked(t)
			return open(t, url), p
		},
	})
}
