package redislock

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A viaReplica listens at a replica, which receives every message published at the
// primary. A client does so after its primary was demoted under it.
type viaReplica struct {
	Conn
	replica Conn
}

func (c viaReplica) Listen(ctx context.Context, ch Channel, ready func(), receive func(string)) error {
	return c.replica.Listen(ctx, ch, ready, receive)
}

func dial(t *testing.T, server *servers.Redis) Conn {
	t.Helper()
	// A busy machine may leave the server without a processor for seconds.
	const patience = time.Minute
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, DisableCache: true,
		Dialer: net.Dialer{Timeout: patience}, ConnWriteTimeout: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &rueidisConn{client: client}
}

// inTime judges the try of a test in which the places and the grants of the waiters cannot have
// run out. Each try has a new key.
func inTime(t *testing.T, ttl time.Duration, test func(claim func(id string) driver.Claim) (wrong string)) {
	t.Helper()
	tries, wrong := 0, ""
	claim := func(id string) driver.Claim {
		return driver.Claim{
			Key: fmt.Sprint("key", tries), ID: fmt.Sprint(id, tries),
			Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: ttl,
		}
	}
	unproved.InTime(t, claim("").Alive(), func() {
		tries++
		wrong = test(claim)
	})
	if wrong != "" {
		t.Error(wrong)
	}
}

// TestListenerAtReplica shows that a waiter which is not connected to the
// primary is not passed over while the message of its grant reaches it: two
// would hold the key.
func TestListenerAtReplica(t *testing.T) {
	primary := servers.StartRedis(t)
	replica := servers.StartReplica(t, primary.Addr())
	primary.AwaitReplicas(1)
	near := must.Get(NewConn(dial(t, primary), nil))
	defer near.Close()
	far := must.Get(NewConn(viaReplica{dial(t, primary), dial(t, replica)}, nil))
	defer far.Close()
	inTime(t, time.Minute, func(claim func(string) driver.Claim) string { return handOverAtReplica(t, near, far, claim) })
}

func handOverAtReplica(t *testing.T, near, far *Store, claim func(id string) driver.Claim) (wrong string) {
	began := time.Now()
	ask := func(s *Store, id string) bool {
		t.Helper()
		g, err := s.Acquire(t.Context(), driver.Ask{Claim: claim(id), Wait: true})
		if err != nil {
			t.Fatal(err)
		}
		return g.OK
	}
	woken := make(chan driver.Grant, 8)
	watch := func(s *Store, id string) (stop func()) {
		t.Helper()
		stop, err := s.Watch(t.Context(), claim(id), func(g driver.Grant) { woken <- g })
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	if !ask(near, "holder") {
		t.Fatal("the first was refused")
	}
	defer watch(far, "first in the queue")()
	defer watch(near, "second in the queue")()
	if ask(far, "first in the queue") || ask(near, "second in the queue") {
		t.Fatal("a second holder was let in")
	}
	if errs := near.Release(t.Context(), []driver.Release{{Claim: claim("holder")}}); errs[0] != nil {
		t.Fatal(errs)
	}
	if time.Since(began) >= claim("").Alive() {
		return "" // The places may have run out before the release.
	}
	for never := time.After(time.Minute); ; {
		select {
		case g := <-woken:
			if !g.OK {
				continue
			}
		case <-never:
			t.Fatal("nobody was told of the release")
		}
		break
	}
	if ask(near, "second in the queue") {
		return "the second in the queue holds the key, which the first has been told is its own"
	}
	if errs := far.Renew(t.Context(), []driver.Renewal{{Claim: claim("first in the queue")}}); errs[0] != nil {
		return fmt.Sprintf("the first in the queue has not got what it was told: %v", errs)
	}
	return ""
}

// TestDeadWaiterIsPassedOver has a waiter lose its process, and the next in the queue
// follow at once.
func TestDeadWaiterIsPassedOver(t *testing.T) {
	server := servers.StartRedis(t)
	inTime(t, time.Hour, func(claim func(string) driver.Claim) string { return passOver(t, server, claim) })
}

func passOver(t *testing.T, server *servers.Redis, claim func(id string) driver.Claim) (wrong string) {
	stores := make([]*Store, 3)
	for i := range stores {
		stores[i] = must.Get(NewConn(dial(t, server), nil))
		defer stores[i].Close()
	}
	for i, id := range []string{"holder", "dies", "next"} {
		if _, err := stores[i].Watch(t.Context(), claim(id), func(driver.Grant) {}); err != nil {
			t.Fatal(err)
		}
		if g, err := stores[i].Acquire(t.Context(), driver.Ask{Claim: claim(id), Wait: true}); err != nil || g.OK != (i == 0) {
			t.Fatal(id, g, err)
		}
	}
	_ = stores[1].Close() // It leaves its place behind, as a process does that is killed.
	servers.Until(t, "the server to know that it does not listen", func() bool { return listeners(server, stores[1]) == 0 })
	stores[0].Release(t.Context(), []driver.Release{{Claim: claim("holder")}})
	holders, err := stores[0].Holders(t.Context(), claim("").Key)
	if err != nil || len(holders) != 2 || holders[0].ID != driver.PublicID(claim("next").ID) || !holders[1].Waiting {
		return fmt.Sprintf("%+v, %v: want the next in the queue to hold the key, and the dead one to wait still", holders, err)
	}
	return ""
}

func listeners(server *servers.Redis, s *Store) int64 {
	reply, _ := server.Must("PUBSUB", "NUMSUB", s.channel.Name).([]any)
	n, _ := reply[1].(int64)
	return n
}
