package zklock

import (
	"os"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
)

var server *servers.ZooKeeper

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return holdUntilTold(args[0], args[1]) })
	os.Exit(servers.Main(m, func(tb servers.TB) { server = servers.StartZooKeeper(tb, "forceSync=no") }))
}

// harness is that of the suite at some servers.
func harness(addrs ...string) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: MinTTL,
		Open:   func(testing.TB) driver.Store { return must.Get(New(addrs, nil)) },
		Newer:  func(t testing.TB, key string) func() string { return raw(t, addrs...).newer(key) },
		Lacks:  drivertest.Raise | drivertest.Tombstones | drivertest.Outlive | drivertest.Roam,
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	h := harness(server.Addr())
	h.Linked = func(t testing.TB) (driver.Store, drivertest.Link) {
		p := servers.StartProxy(t, server.Addr())
		return harness(p.Addr()).Open(t), p
	}
	drivertest.Run(t, h)
}

func BenchmarkStore(b *testing.B) { drivertest.Bench(b, harness(server.Addr())) }
