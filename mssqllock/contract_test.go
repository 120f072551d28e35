package mssqllock

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// linked is a proxy before the server, and the server's URL through it.
func (s *server) linked(t testing.TB) (p *servers.Proxy, through string) {
	t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	p = servers.StartProxy(t, at.Host)
	at.Host = p.Addr()
	return p, at.String()
}

// rows is a table of the server, to read and write by SQL.
func (s *server) rows(t testing.TB, store driver.Store, table string) goldentest.Table {
	return goldentest.Table{Store: store, Name: table, Octets: true, Exec: func(statement string) {
		t.Helper()
		do(t, s.db, statement)
	}, Query: func(query string) string {
		t.Helper()
		var values [7]any
		if err := s.db.QueryRow(query).Scan(&values[0], &values[1], &values[2], &values[3], &values[4], &values[5], &values[6]); err != nil {
			t.Fatalf("%v in %s", err, query)
		}
		return fmt.Sprintf("%q", values)
	}}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	s := aServer(t)
	store := s.prepared(t, "&wake=false")
	s.rows(t, store, sqlstore.DefaultTable).Golden(t)
}

func TestContract(t *testing.T) {
	// The records of a newer release disturb a rule that reads all keys.
	table := func(t testing.TB) string {
		if strings.Contains(t.Name(), "/format/") {
			return "contract_newer"
		}
		return "contract"
	}
	s := aServer(t)
	for _, table := range []string{"contract", "contract_newer"} {
		s.prepared(t, "&wake=false&table="+table)
	}
	drivertest.Run(t, drivertest.Harness{
		Lacks: drivertest.Notify | drivertest.Watch,
		// The stores share connections, because the server takes long for the first statements of
		// each. TestWakes is about stores that a URL makes.
		Open:  func(t testing.TB) driver.Store { return must.Get(New(s.db, &Options{Table: table(t)})) },
		Newer: func(t testing.TB, key string) func() string { return s.rows(t, nil, table(t)).Newer(key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p, through := s.linked(t)
			return opened(t, through+"&conns=2&wake=false&table="+table(t)), p
		},
	})
}
