package pglock

import (
	"context"
	"crypto/rand"
	"os"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

var server *servers.Postgres

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { server = servers.AnyPostgres(tb, "max_connections = 400") }))
}

func TestContract(t *testing.T) {
	var tables sync.Map
	drivertest.Run(t, drivertest.Harness{
		Open: func(t testing.TB) driver.Store {
			f, _ := tables.LoadOrStore(t, "t_"+rand.Text())
			s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
				return driver.Open(ctx, server.URL()+"&table="+f.(string))
			})
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return s, s.(*Store).Create(ctx) })
		},
	})
}
