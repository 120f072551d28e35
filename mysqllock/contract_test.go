package mysqllock

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var (
	shared *servers.MariaDB // of all tests that do it no harm
	server string           // its URL
)

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) {
		shared = servers.AnyMariaDB(tb, "innodb_flush_method = nosync", "max_connections = 400")
		server = shared.URL()
	}))
}

// Server is the server of all tests that do it no harm.
func Server() *servers.MariaDB { return shared }

// linked is a proxy before the server, and the server's URL through it.
func linked(t testing.TB) (p *servers.Proxy, through string) {
	t.Helper()
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p = servers.StartProxy(t, at.Host)
	at.Host = p.Addr()
	return p, at.String()
}

// A table is that of one rule, which its first client makes.
type table struct {
	name string
	once sync.Once
}

// rowsOf is a table of the server, to read and write by SQL.
func rowsOf(s driver.Store, table string) goldentest.Table {
	return goldentest.Table{Store: s, Name: table, Exec: func(statement string) { shared.Must(statement) }, Query: shared.Must}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	name := "golden_" + rand.Text()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, server+"?table="+name) })
	t.Cleanup(func() { s.Close() })
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(*Store).Create(ctx) })
	rowsOf(s, name).Golden(t)
}

func TestContract(t *testing.T) {
	var tables sync.Map
	open := func(t testing.TB, url string) driver.Store {
		made, _ := tables.LoadOrStore(t, &table{name: "t_" + rand.Text()})
		own := made.(*table)
		s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			return driver.Open(ctx, url+"?table="+own.name)
		})
		own.once.Do(func() {
			servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(*Store).Create(ctx) })
		})
		return s
	}
	drivertest.Run(t, drivertest.Harness{
		Lacks: drivertest.Watch | drivertest.Notify,
		Open:  func(t testing.TB) driver.Store { return open(t, server) },
		Newer: func(t testing.TB, key string) func() string {
			made, _ := tables.Load(t)
			return rowsOf(nil, made.(*table).name).Newer(key)
		},
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p, url := linked(t)
			return open(t, url), p
		},
	})
}
