package zklock

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestLeastRights is a few rules that need all requests of a store, for a user with the
// rights that the documentation names, and no others.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	h := harness(server.Addr())
	h.Open = func(t testing.TB) driver.Store {
		return servers.Insist(t, func(ctx context.Context) (driver.Store, error) {
			return driver.Open(ctx, "zk://least:secret@"+server.Addr()+"/least?acl=auth::cdrw")
		})
	}
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "watch/release", "token/over-release", "batch/one-key") {
		t.Error(failure)
	}
}
