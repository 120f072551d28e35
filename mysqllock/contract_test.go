package mysqllock

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
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

// rowsOf is a table of the server, to read and write by SQL.
func rowsOf(s driver.Store, table string) goldentest.Table {
	return goldentest.Table{Store: s, Name: table, Exec: func(statement string) { shared.Must(statement) }, Query: shared.Must}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	name := "golden_" + rand.Text()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, server+"?table="+name) })
	t.Cleanup(func() { s.Close() })
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
	rowsOf(s, name).Golden(t)
}

func TestContract(t *testing.T) {
	// The records of a newer release disturb a rule that reads all keys.
	table := func(t testing.TB) string {
		if strings.Contains(t.Name(), "/format/") {
			return "contract_newer"
		}
		return "contract"
	}
	open := func(t testing.TB, url, table string) driver.Store {
		return servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			return driver.Open(ctx, url+"?table="+table)
		})
	}
	for _, table := range []string{"contract", "contract_newer"} {
		s := open(t, server, table)
		servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.(driver.Creator).Create(ctx) })
		s.Close()
	}
	drivertest.Run(t, drivertest.Harness{
		Lacks: drivertest.Notify,
		Open:  func(t testing.TB) driver.Store { return open(t, server, table(t)) },
		Newer: func(t testing.TB, key string) func() string { return rowsOf(nil, table(t)).Newer(key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p, url := linked(t)
			return open(t, url, table(t)), p
		},
	})
}
