package etcdlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// cheap lets a server take little time for each login, and forget it after a second
// in which nobody has used it.
var cheap = []string{"--auth-token-ttl=1", "--bcrypt-cost=4"}

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

// TestLoginExpires lets the tokens of logins run out again and again, that with which
// a watch began as well, while claims are taken, watched for and kept alive.
//
// A waiter keeps its place for three seconds without asking, so this waiter asks as often
// as the core does. On a slow machine the waiter may lose its place, or the wake-up may come
// late, which shows nothing of the watch: then there is one more round. The watch has missed
// the wake-up if another client heard of the release long before the waiter lost its place. On a
// slow machine that happens once, perhaps.
func TestLoginExpires(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, cheap...)
	protect(t, e.Addr())
	at := "etcd://locks:secret@" + e.Addr()
	a, b := openStore(t, at), openStore(t, at)
	missed := 0
	for round, woken := 0, 0; woken < 3; round++ {
		if round == 12 {
			unproved.Logf(t, "the waiter was woken in %d of %d rounds", woken, round)
			return
		}
		holder, waiter := exclusive("key", fmt.Sprint("holder", round)), waiting("key", fmt.Sprint("waiter", round))
		first := granted(t, a, holder)
		refused(t, b, waiter)
		wakes := make(chan driver.Grant, 8)
		stop := watch(t, b, waiter.Claim, func(g driver.Grant) { wakes <- g })
		<-time.After(4 * time.Second) // All tokens expire meanwhile.
		refused(t, b, waiter)         // with a new one, while the watch has the old one
		servers.Await(t, "renewal", func() error { return renew(t.Context(), a, holder.Claim) })
		claims := queued(t, e.Addr())
		if len(claims) == 0 {
			t.Fatal("no claim is left of a holder and a waiter")
		}
		heard := departure(t, e.Addr(), string(claims[0].Key))
		refused(t, b, waiter)
		before := queued(t, e.Addr())
		for len(wakes) > 0 {
			<-wakes // It may have lost its place before.
		}
		release(t, a, holder.Claim)
		other := <-heard
		select {
		case g := <-wakes:
			if g.OK && g.Fence <= first.Fence {
				t.Errorf("token %d after %d", g.Fence, first.Fence)
			}
			woken++
		case <-time.After(aWhile):
			after := queued(t, e.Addr())
			kept := len(before) == 2 && len(after) == 1 && after[0].CreateRevision == before[1].CreateRevision
			if other && kept && len(wakes) == 0 {
				missed++
				unproved.Logf(t, "round %d: another client heard of the release, and the first waiter did not in %v", round, aWhile)
			}
			if missed == 3 {
				t.Fatal("three wake-ups were missed, see above")
			}
		}
		stop()
		servers.Await(t, "release", func() error {
			grantedAtLast(t, b, waiter) // The pushed grant may have expired.
			return b.Release(t.Context(), []driver.Release{{Claim: waiter.Claim}})[0]
		})
	}
}

// asRoot lets a client that logs in as root now do something, again if the login ends before.
func asRoot[T any](t *testing.T, addr string, do func(c *clientv3.Client) (T, error)) (got T) {
	t.Helper()
	servers.Await(t, "answer to root", func() error {
		c, err := clientv3.New(clientv3.Config{
			Endpoints: []string{addr}, Username: "root", Password: "secret", DialTimeout: patience, Logger: zap.NewNop(),
		})
		if err != nil {
			return err
		}
		t.Cleanup(func() { c.Close() })
		got, err = do(c)
		return err
	})
	return got
}

// queued returns the claims on all keys, the oldest first.
func queued(t *testing.T, addr string) []*mvccpb.KeyValue {
	t.Helper()
	return asRoot(t, addr, func(c *clientv3.Client) ([]*mvccpb.KeyValue, error) {
		r, err := c.Get(t.Context(), etcdlock.DefaultPrefix+"claims/", clientv3.WithPrefix(),
			clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err != nil {
			return nil, err
		}
		return r.Kvs, nil
	})
}

// departure returns a channel that tells whether a new client was notified that a key was
// deleted. The client waits for a minute, and may be cut off before.
func departure(t *testing.T, addr, key string) <-chan bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	events := asRoot(t, addr, func(c *clientv3.Client) (clientv3.WatchChan, error) {
		events := c.Watch(ctx, key, clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
		if r := <-events; !r.Created {
			return nil, fmt.Errorf("watch: %v", r.Err())
		}
		return events, nil
	})
	heard := make(chan bool, 1)
	go func() {
		for r := range events {
			if len(r.Events) > 0 {
				heard <- true
				return
			}
		}
		heard <- false
	}()
	return heard
}

// TestWatchAfterLogin begins a watch when the token has run out with which another
// began that still lasts: the client has one stream for both.
func TestWatchAfterLogin(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, cheap...)
	protect(t, e.Addr())
	s := openStore(t, "etcd://locks:secret@"+e.Addr())
	servers.Await(t, "watch", func() error {
		stop, err := s.Watch(t.Context(), waiting("one", "id").Claim, func(driver.Grant) {})
		if err == nil {
			t.Cleanup(stop)
		}
		return err
	})
	<-time.After(4 * time.Second) // It expires meanwhile.
	servers.Await(t, "watch", func() error {
		if _, err := s.Acquire(t.Context(), exclusive("else", "id")); err != nil { // with a new token
			return err
		}
		stop, err := s.Watch(t.Context(), waiting("two", "id").Claim, func(driver.Grant) {})
		if err == nil {
			stop()
		}
		return err
	})
}
