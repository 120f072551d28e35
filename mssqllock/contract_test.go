package mssqllock

import (
	"net/url"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
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

func TestContract(t *testing.T) {
	s := aServer(t)
	s.prepared(t, "")
	drivertest.Run(t, drivertest.Harness{
		Lacks: drivertest.Notify | drivertest.Watch,
		// The stores share connections, because the server takes long for the first statements of
		// each. TestWakes is about stores that a URL makes.
		Open: func(t testing.TB) driver.Store { return must.Get(New(s.db, nil)) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p, through := s.linked(t)
			return opened(t, through+"&conns=2&wake=false"), p
		},
	})
}
