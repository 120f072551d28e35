package etcdlock_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/etcdlock"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// opening is a harness of a store that a URL names.
func opening(url string) drivertest.Harness {
	return drivertest.Harness{
		MinTTL: etcdlock.MinTTL,
		Open: func(t testing.TB) driver.Store {
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
		},
		Lacks: drivertest.Raise,
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, opening(shared.URL()))
}

func BenchmarkStore(b *testing.B) {
	drivertest.Bench(b, opening(shared.URL()))
}
