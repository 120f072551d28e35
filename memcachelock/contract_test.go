package memcachelock

import (
	"crypto/rand"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var shared *servers.Memcached // for tests that do nothing to it

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartMemcached(tb) }))
}

func harness() drivertest.Harness {
	var prefixes sync.Map
	open := func(t testing.TB, addr string) driver.Store {
		prefix, _ := prefixes.LoadOrStore(t, rand.Text())
		return must.Get(New([]string{addr}, &Options{Prefix: prefix.(string)}))
	}
	return drivertest.Harness{
		MinTTL: time.Second,
		Lacks:  drivertest.Raise | drivertest.Queue | drivertest.Watch | drivertest.Notify,
		Open:   func(t testing.TB) driver.Store { return open(t, shared.Addr()) },
		Newer: func(t testing.TB, key string) func() string {
			prefix, _ := prefixes.Load(t)
			return newerItem(t, prefix.(string)+"="+key)
		},
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p := servers.StartProxy(t, shared.Addr())
			return open(t, p.Addr()), p
		},
	}
}

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is silent.
func TestContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, harness())
}

func BenchmarkContract(b *testing.B) {
	newStore(b, nil, shared) // Its first second is over.
	drivertest.Bench(b, harness())
}
