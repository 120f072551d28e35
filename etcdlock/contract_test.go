package etcdlock_test

import (
	"crypto/rand"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// opening is a harness of a store that a URL names.
func opening(url string) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: etcdlock.MinTTL,
		Open:   func(t testing.TB) driver.Store { return opened(t, url) },
		Lacks:  drivertest.Raise,
	}
}

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is silent.
func TestContract(t *testing.T) {
	t.Parallel()
	h := opening(shared.URL())
	var prefixes sync.Map // by rule: the records of a newer release disturb other rules
	prefix := func(t testing.TB) string {
		own, _ := prefixes.LoadOrStore(t, rand.Text()+"/")
		return own.(string)
	}
	admin := admin(t, shared.Direct())
	h.Open = func(t testing.TB) driver.Store { return opened(t, shared.URL()+"?prefix="+prefix(t)) }
	h.Newer = func(t testing.TB, key string) func() string { return newer(t, admin, prefix(t), key) }
	h.Linked = func(t testing.TB) (driver.Store, drivertest.Link) {
		p := servers.StartProxy(t, shared.Direct())
		return opened(t, "etcd://"+p.Addr()+"?prefix="+prefix(t)), p
	}
	drivertest.Run(t, h)
}

func BenchmarkStore(b *testing.B) {
	drivertest.Bench(b, opening(shared.URL()))
}
