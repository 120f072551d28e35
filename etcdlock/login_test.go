package etcdlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestIdleLogin asks when the login has expired, with nothing asked since it was made:
// neither the call nor the one for a new login may fail of it.
func TestIdleLogin(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, cheap...)
	protect(t, e.Addr())
	s := openStore(t, "etcd://locks:secret@"+e.Addr())
	<-time.After(4 * time.Second) // It expires meanwhile.
	a := exclusive("key", "id")
	g := servers.Insist(t, func(ctx context.Context) (driver.Grant, error) { return s.Acquire(ctx, a) })
	if !g.OK {
		t.Fatalf("%+v", g)
	}
	release(t, s, a.Claim)
}
