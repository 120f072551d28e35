package stores

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestEndedLease: a machine that stops for longer than the TTL costs a side its lease, and not the
// run its tables.
func TestEndedLease(t *testing.T) {
	t.Parallel()
	at := []string{servers.StartEtcd(t).Direct()}
	side, err := openTxn(at, 15*time.Second) // The side learns of the end within a third of that.
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	client, err := newEtcd(at)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 2 {
		unlock, err := side.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := unlock(); err != nil {
			t.Error(err)
		}
		leases, err := client.Leases(t.Context())
		if err != nil || len(leases.Leases) != 1 {
			t.Fatalf("the side has the leases %+v, %v; want one", leases, err)
		}
		if _, err := client.Revoke(t.Context(), clientv3.LeaseID(leases.Leases[0].ID)); err != nil {
			t.Fatal(err)
		}
	}
}
