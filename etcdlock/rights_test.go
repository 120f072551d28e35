package etcdlock_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestLeastRights is a few rules that need all requests of a store, for a user who may read
// and write the prefix, and nothing else.
func TestLeastRights(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, cheap...)
	protect(t, e.Addr())
	h := opening("etcd://locks:secret@" + e.Addr())
	for _, failure := range drivertest.Check(t, h, "together/all-methods", "watch/release", "token/over-release", "batch/one-key") {
		t.Error(failure)
	}
}
