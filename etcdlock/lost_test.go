package etcdlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// under returns the keys of etcd with a prefix.
func under(t testing.TB, c *clientv3.Client, prefix string) *clientv3.GetResponse {
	t.Helper()
	r, err := c.Get(t.Context(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// only returns the one key that there is with a prefix.
func only(t testing.TB, c *clientv3.Client, prefix string) *mvccpb.KeyValue {
	t.Helper()
	all := under(t, c, prefix).Kvs
	if len(all) != 1 {
		t.Fatalf("%d keys begin with %s, want one", len(all), prefix)
	}
	return all[0]
}

// TestLeaseRevoked ends a lease behind the back of a client: exactly the claims
// under it are lost, and told.
func TestLeaseRevoked(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	prefix := rand.Text() + "/"
	s := openStore(t, shared.URL()+"?prefix="+prefix)
	lost := make(chan string, 10)
	defer s.Notify(func(_, id string, err error) {
		if !errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrBroken) {
			t.Errorf("%s: told of %v", id, err)
		}
		lost <- id
	})()
	short, other, long := exclusive("short", "short"), exclusive("other", "other"), exclusive("long", "long")
	long.TTL = time.Hour
	for _, claim := range []driver.Ask{short, other, long} {
		granted(t, s, claim)
	}
	on := make(map[string]clientv3.LeaseID)
	for _, kv := range under(t, c, prefix+"claims/").Kvs {
		on[strings.Split(string(kv.Key), "/")[2]] = clientv3.LeaseID(kv.Lease)
	}
	if on["short"] != on["other"] || on["short"] == on["long"] {
		t.Fatalf("the leases are %v, want one for each TTL", on)
	}
	if _, err := c.Revoke(t.Context(), on["short"]); err != nil {
		t.Fatal(err)
	}
	told := make(map[string]bool)
	for range 2 {
		select {
		case id := <-lost:
			told[id] = true
		case <-time.After(patience):
			t.Fatalf("told of %v only", told)
		}
	}
	var errs []error
	servers.Until(t, "an answer for the claim that stands", func() bool {
		errs = s.Renew(t.Context(), []driver.Renewal{{Claim: short.Claim}, {Claim: other.Claim}, {Claim: long.Claim}})
		return !errors.Is(errs[2], context.DeadlineExceeded)
	})
	if !told["short"] || !told["other"] || !errors.Is(errs[0], driver.ErrLost) || !errors.Is(errs[1], driver.ErrLost) || errs[2] != nil {
		t.Errorf("told of %v, renewal says %v; want short and other to be lost", told, errs)
	}
	next := exclusive("short", "next")
	granted(t, s, next) // under a new lease
	release(t, s, next.Claim)
	release(t, s, long.Claim)
}

// TestDeletedByHand: the holder learns of it when it renews, and what it then
// releases is not another's.
func TestDeletedByHand(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	prefix := rand.Text() + "/"
	s := openStore(t, shared.URL()+"?prefix="+prefix)
	holder, next := exclusive("key", "holder"), exclusive("key", "next")
	first := granted(t, s, holder)
	if _, err := c.Delete(t.Context(), prefix+"claims/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	other := openStore(t, shared.URL()+"?prefix="+prefix)
	if second := granted(t, other, next); second.Fence <= first.Fence {
		t.Errorf("token %d after %d", second.Fence, first.Fence)
	}
	if err := answered(t, func(ctx context.Context) error { return renew(ctx, s, holder.Claim) }); !errors.Is(err, driver.ErrLost) {
		t.Errorf("renewal says %v, want ErrLost", err)
	}
	if err := answered(t, func(ctx context.Context) error { return s.Release(ctx, []driver.Release{{Claim: holder.Claim}})[0] }); !errors.Is(err, driver.ErrLost) {
		t.Errorf("release says %v, want ErrLost", err)
	}
	if err := answered(t, func(ctx context.Context) error { return renew(ctx, other, next.Claim) }); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// TestAcquireOfDeleted requests a claim again that is gone. The owner is notified, because etcd may
// refuse the id for a while.
func TestAcquireOfDeleted(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	prefix := rand.Text() + "/"
	s := openStore(t, shared.URL()+"?prefix="+prefix)
	lost := make(chan error, 1)
	defer s.Notify(func(_, _ string, err error) { lost <- err })()
	holder := exclusive("key", "holder")
	granted(t, s, holder)
	if _, err := c.Delete(t.Context(), prefix+"claims/", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	refused(t, s, holder)
	select {
	case err := <-lost:
		if !errors.Is(err, driver.ErrLost) {
			t.Errorf("told of %v, want ErrLost", err)
		}
	default:
		t.Error("the owner is not told of the loss")
	}
}

// TestFolderDeleted deletes the places of one who holds and two who wait at once:
// nobody is told that it holds now, because nobody has a place.
func TestFolderDeleted(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	inTime(t, func(t *scene) {
		folder := "folder" + rand.Text() + "/"
		a, b := openStore(t, shared.URL()+"?prefix="+folder), openStore(t, shared.URL()+"?prefix="+folder)
		granted(t, a, exclusive("key", "holder"))
		wakes := make(chan driver.Grant, 8)
		for _, id := range []string{"first", "second"} {
			defer watch(t, b, waiting("key", id).Claim, func(g driver.Grant) { wakes <- g })()
		}
		t.begin()
		for _, id := range []string{"first", "second"} {
			refused(t, b, waiting("key", id))
		}
		if _, err := c.Delete(t.Context(), folder+"claims/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			select {
			case g := <-wakes:
				if g.OK {
					t.Errorf("a claim without a place was pushed %+v", g)
				}
			case <-time.After(aWhile):
				t.missing("a waiter is told of the end of its place")
			}
		}
		granted(t, b, waiting("key", "second"))
		refused(t, b, waiting("key", "first"))
	})
}

// watch begins to watch for a claim, also if the server is slow.
func watch(t testing.TB, s driver.Store, c driver.Claim, wake func(driver.Grant)) (stop func()) {
	t.Helper()
	return servers.Insist(t, func(ctx context.Context) (func(), error) { return s.(driver.Watcher).Watch(ctx, c, wake) })
}

// TestWrittenAnew renews a claim that was written since it was last heard of, as by
// a request of the past, or by another client: it stays, and goes under its lease.
func TestWrittenAnew(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	prefix := rand.Text() + "/"
	s := openStore(t, shared.URL()+"?prefix="+prefix)
	holder := exclusive("key", "holder")
	granted(t, s, holder)
	write := func() (before int64) {
		t.Helper()
		kv := only(t, c, prefix+"claims/")
		if _, err := c.Put(t.Context(), string(kv.Key), string(kv.Value)); err != nil { // under no lease
			t.Fatal(err)
		}
		return kv.Lease
	}
	was := write()
	servers.Await(t, "renewal", func() error { return renew(t.Context(), s, holder.Claim) })
	if kv := only(t, c, prefix+"claims/"); kv.Lease != was {
		t.Errorf("after a renewal it is under lease %x, want %x", kv.Lease, was)
	}
	for _, long := range []bool{true, false} {
		write()
		r := driver.Renewal{Claim: holder.Claim, Leave: !long}
		if r.TTL = 15 * time.Second; long {
			r.TTL = time.Minute
		}
		if err := answered(t, func(ctx context.Context) error { return s.Renew(ctx, []driver.Renewal{r})[0] }); err != nil {
			t.Fatal(err)
		}
		if kv := only(t, c, prefix+"claims/"); kv.Lease == 0 || strings.Contains(string(kv.Value), "left") == long {
			t.Errorf("after a renewal it is %s, under lease %x", kv.Value, kv.Lease)
		}
	}
}

// TestCompaction forgets the past under those who hold and wait.
func TestCompaction(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	c := admin(t, e.Addr())
	opts := &holdfast.Options{TTL: 5 * time.Minute}
	a, b := locker(t, e.URL(), opts), locker(t, e.URL(), opts)
	for range 5 {
		l := locked(t, a, "key")
		got := make(chan *holdfast.Lock, 1)
		go func() { got <- lockAgain(t.Context(), t, b, "key") }()
		servers.Await(t, "waiter", func() error {
			hs, err := a.Holders(t.Context(), "key")
			if err == nil && len(hs) < 2 {
				err = errors.New("nobody waits")
			}
			return err
		})
		// A watch that has to begin again finds that its past is gone.
		e.Clients.Refuse(true)
		e.Clients.Reset()
		local := admin(t, e.Direct())
		for range 3 {
			r, err := local.Put(t.Context(), "else", "")
			if err == nil {
				_, err = local.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		e.Clients.Refuse(false)
		if _, err := c.Get(t.Context(), "else"); err != nil {
			t.Fatal(err)
		}
		if err := unlock(l); err != nil {
			t.Error(err)
		}
		select {
		case next := <-got:
			if next.Fence() <= l.Fence() {
				t.Errorf("token %d after %d", next.Fence(), l.Fence())
			}
			_ = next.Unlock()
		case <-time.After(patience):
			t.Fatal("the waiter was not woken")
		}
	}
}

// TestAnotherCluster lets another cluster answer at the address of the first, as
// after a restore: it knows nothing of the locks, and its revisions are smaller.
func TestAnotherCluster(t *testing.T) {
	t.Parallel()
	first, second := servers.StartEtcd(t), servers.StartEtcd(t)
	s := openStore(t, first.URL())
	claim := exclusive("key", "id")
	granted(t, s, claim)
	first.Clients.Redirect(second.Direct())
	servers.Await(t, "refusal", func() error {
		g, err := s.Acquire(t.Context(), exclusive("other", "other"))
		if g.OK {
			t.Fatal("a lock was granted by another cluster")
		}
		if err == nil {
			return errors.New("it is to be asked for again")
		}
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "restart the process") {
			return err
		}
		return nil
	})
}
