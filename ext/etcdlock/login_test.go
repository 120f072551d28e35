package etcdlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestIdleLogin asks when the login has expired, with nothing asked since it was made:
// neither the call nor the one for a new login may fail of it.
func TestIdleLogin(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, cheap...)
	protect(t, e.Addr())
	s := openStore(t, "etcd://locks:secret@"+e.Addr())
	<-time.After(4 * time.Second) // It expires meanwhile.
	c := exclusive("key", "id")
	g, err := s.Acquire(t.Context(), c)
	if err != nil || !g.OK {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := s.Release(t.Context(), []driver.Claim{c})[0]; err != nil {
		t.Fatal(err)
	}
}
