package etcdlock_test

import (
	"errors"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/etcdlock"
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

// TestLookingRights has a user see the holders who may only read the prefix.
func TestLookingRights(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, cheap...)
	c, ctx := admin(t, e.Addr()), t.Context()
	_, err1 := c.RoleAdd(ctx, "guests")
	_, err2 := c.RoleGrantPermission(ctx, "guests", etcdlock.DefaultPrefix, clientv3.GetPrefixRangeEnd(etcdlock.DefaultPrefix), clientv3.PermissionType(clientv3.PermRead))
	_, err3 := c.UserAdd(ctx, "guest", "secret")
	_, err4 := c.UserGrantRole(ctx, "guest", "guests")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	protect(t, e.Addr())
	owner, guest := openStore(t, "etcd://locks:secret@"+e.Addr()), openStore(t, "etcd://guest:secret@"+e.Addr())
	if g, err := owner.Acquire(ctx, exclusive("key", "id")); err != nil || !g.OK {
		t.Fatal(g, err)
	}
	holders, err := guest.Holders(ctx, "key")
	if err != nil || len(holders) != 1 {
		t.Fatalf("the guest sees %+v, %v", holders, err)
	}
	for key, err := range guest.Keys(ctx, "") {
		if err != nil || key != "key" {
			t.Errorf("the guest lists %q, %v", key, err)
		}
	}
	if g, err := guest.Acquire(ctx, exclusive("other", "id")); err == nil || g.OK {
		t.Errorf("the guest acquires %+v, %v", g, err)
	}
	if err := guest.Break(ctx, "key", holders[0].ID); err == nil {
		t.Error("the guest has broken the lock")
	}
}
