package redislock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// A viaReplica listens at a replica, which hears all that is published at the
// primary. A client does so after its primary was demoted under it.
type viaReplica struct {
	Conn
	replica Conn
}

func (c viaReplica) Listen(ctx context.Context, ch Channel, ready func(), hear func(string)) error {
	return c.replica.Listen(ctx, ch, ready, hear)
}

func dial(t *testing.T, server *servers.Redis) Conn {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &rueidisConn{client: client}
}

// TestListenerAtReplica shows that a waiter which is not connected to the
// primary is not passed over while the message of its grant reaches it: two
// would hold the key.
func TestListenerAtReplica(t *testing.T) {
	primary := servers.StartRedis(t)
	replica := servers.StartReplica(t, primary.Addr())
	primary.AwaitReplicas(1)
	near := NewConn(dial(t, primary), nil)
	defer near.Close()
	far := NewConn(viaReplica{dial(t, primary), dial(t, replica)}, nil)
	defer far.Close()

	claim := func(id string) driver.Claim {
		return driver.Claim{Key: "key", ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute, Wait: true}
	}
	ask := func(s *Store, id string) bool {
		t.Helper()
		g, err := s.Acquire(t.Context(), claim(id))
		if err != nil {
			t.Fatal(err)
		}
		return g.OK
	}
	woken := make(chan driver.Grant, 8)
	watch := func(s *Store, id string) {
		t.Helper()
		if _, err := s.Watch(t.Context(), claim(id), func(g driver.Grant) { woken <- g }); err != nil {
			t.Fatal(err)
		}
	}
	if !ask(near, "holder") {
		t.Fatal("the first was refused")
	}
	watch(far, "first in line")
	watch(near, "second in line")
	if ask(far, "first in line") || ask(near, "second in line") {
		t.Fatal("a second holder was let in")
	}
	if errs := near.Release(t.Context(), []driver.Claim{claim("holder")}); errs[0] != nil {
		t.Fatal(errs)
	}
	for granted := false; !granted; {
		select {
		case g := <-woken:
			granted = g.OK
		case <-time.After(10 * time.Second):
			t.Fatal("nobody was told of the release")
		}
	}
	if ask(near, "second in line") {
		t.Error("the second in line holds the key, which the first has been told is its own")
	}
	if errs := far.Renew(t.Context(), []driver.Claim{claim("first in line")}); errs[0] != nil {
		t.Errorf("the first in line has not got what it was told: %v", errs)
	}
}

// TestDeadWaiterIsPassedOver has a waiter lose its process, and the next in line
// follow at once.
func TestDeadWaiterIsPassedOver(t *testing.T) {
	server := servers.StartRedis(t)
	stores := make([]*Store, 3)
	for i := range stores {
		stores[i] = NewConn(dial(t, server), nil)
		defer stores[i].Close()
	}
	claim := func(id string) driver.Claim {
		return driver.Claim{Key: "key", ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Hour, Wait: true}
	}
	for i, id := range []string{"holder", "dies", "next"} {
		if _, err := stores[i].Watch(t.Context(), claim(id), func(driver.Grant) {}); err != nil {
			t.Fatal(err)
		}
		if g, err := stores[i].Acquire(t.Context(), claim(id)); err != nil || g.OK != (i == 0) {
			t.Fatal(id, g, err)
		}
	}
	_ = stores[1].Close() // It leaves its place behind, as a process does that is killed.
	for deadline := time.Now().Add(10 * time.Second); listeners(server, stores[1]) > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the server still thinks that it listens")
		}
	}
	stores[0].Release(t.Context(), []driver.Claim{claim("holder")})
	holders, err := stores[0].Holders(t.Context(), "key")
	if err != nil || len(holders) != 2 || holders[0].ID != driver.PublicID("next") || !holders[1].Waiting {
		t.Errorf("%+v, %v: want the next in line to hold the key, and the dead one to wait still", holders, err)
	}
}

func listeners(server *servers.Redis, s *Store) int64 {
	reply, _ := server.Must("PUBSUB", "NUMSUB", s.losses.Name).([]any)
	n, _ := reply[1].(int64)
	return n
}
