package etcdlock_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestJoinCrowd has a client join a queue that it knows to be long: it sends one transaction,
// with no read before. If the queue is empty by then, the claim holds.
func TestJoinCrowd(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		var sent atomic.Int64
		b, prefix := intercepted(t, counting(&sent))
		a := openStore(t, shared.URL()+"?prefix="+prefix)
		claim := waiting("long"+rand.Text(), "first")
		claims, _ := last(t, a, b, claim)
		sent.Store(0)
		second := waiting(claim.Key, "second"+claim.Key)
		refused(t, b, second)
		if n := sent.Load(); n != 1 {
			t.Errorf("%d transactions to join the queue, want 1", n)
		}
		for _, c := range append(claims, claim.Claim, second.Claim) {
			_ = a.Release(t.Context(), []driver.Release{{Claim: c}})
		}
		third := waiting(claim.Key, "third"+claim.Key)
		granted(t, b, third)
		if err := renew(t.Context(), b, third.Claim); err != nil {
			t.Error(err)
		}
		release(t, b, third.Claim)
	})
}

// TestVastQueue has a claim wait in a vast queue. A waiter that has just begun to watch sends one
// request, not one for the watch and one for the second look. It learns the name of the holder only
// once it has waited for some time, and is woken at its turn.
func TestVastQueue(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		var sent atomic.Int64
		b, prefix := intercepted(t, counting(&sent))
		a := openStore(t, shared.URL()+"?prefix="+prefix)
		claim := waiting("vast"+rand.Text(), rand.Text())
		claims := vast(t, a, claim)
		joined := time.Now()
		refused(t, b, claim)
		sent.Store(0)
		wakes := make(chan driver.Grant, 100)
		defer watch(t, b, claim.Claim, func(g driver.Grant) { wakes <- g })()
		if g := refused(t, b, claim); g.Holder != (driver.Holder{}) || g.Kept > 4*claim.Alive() {
			t.Errorf("the refusal is %+v, want no holder, and a place for %v at most", g, 4*claim.Alive())
		}
		soon := time.Since(joined) < time.Second
		servers.Until(t, "the request of the watch", func() bool { return sent.Load() > 0 })
		if n := sent.Load(); soon && n > 1 {
			t.Errorf("%d requests, want that of the watch", n)
		}
		servers.Until(t, "the name of the holder", func() bool {
			return refused(t, b, claim).Holder.ID == driver.PublicID(claims[0].ID)
		})
		t.begin()
		for _, c := range claims {
			_ = a.Release(t.Context(), []driver.Release{{Claim: c}})
		}
		grantedAtTurn(t, b, claim, wakes)
		release(t, b, claim.Claim)
	})
}

// TestPushInVastQueue has a claim in a vast queue watched some time after it has joined. The time of
// the pushed grant counts from the request after the beginning of the watch.
func TestPushInVastQueue(t *testing.T) {
	t.Parallel()
	prefix := rand.Text() + "/"
	a, b := openStore(t, shared.URL()+"?prefix="+prefix), openStore(t, shared.URL()+"?prefix="+prefix)
	inTime(t, func(t *scene) {
		claim := waiting("vast"+rand.Text(), rand.Text())
		claims := vast(t, a, claim)
		joined := time.Now()
		refused(t, b, claim)
		servers.Until(t, "a while", func() bool { return time.Since(joined) > 500*time.Millisecond })
		wakes := make(chan driver.Grant, 100)
		defer watch(t, b, claim.Claim, func(g driver.Grant) { wakes <- g })()
		sent := time.Now()
		refused(t, b, claim)
		t.begin()
		for _, c := range claims {
			_ = a.Release(t.Context(), []driver.Release{{Claim: c}})
		}
		for timeout := time.After(aWhile); ; {
			select {
			case g := <-wakes:
				if latest := time.Now().Add(claim.Alive()); g.OK && sent.Add(g.TTL).After(latest) {
					t.Errorf("pushed until %v, want until %v at most", sent.Add(g.TTL), latest)
				}
				if g.OK || asked(t, b, claim).OK {
					release(t, b, claim.Claim)
					return
				}
			case <-timeout:
				t.missing("the last claim is woken")
			}
		}
	})
}

// vast queues a holder and many waiting claims ahead of a claim, and returns them.
func vast(t *scene, s driver.Store, claim driver.Ask) (claims []driver.Claim) {
	t.Helper()
	holder := exclusive(claim.Key, "holder"+claim.Key)
	granted(t, s, holder)
	t.begin()
	claims = append(claims, holder.Claim)
	for i := range 4 * ahead {
		w := waiting(claim.Key, fmt.Sprint("waiter", i, claim.Key))
		refused(t, s, w)
		claims = append(claims, w.Claim)
	}
	return claims
}

// TestUnheardJoin has a claim join a long queue by a request whose answer is lost. The second
// attempt finds the claim, which is woken at its turn.
func TestUnheardJoin(t *testing.T) {
	t.Parallel()
	var loses atomic.Bool
	b, prefix := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, conn, opts...)
		if r, ok := reply.(*etcdserverpb.TxnResponse); ok && err == nil && wrote(r) && loses.Swap(false) {
			return status.Error(codes.Unavailable, "the answer is lost")
		}
		return err
	})
	a := openStore(t, shared.URL()+"?prefix="+prefix)
	inTime(t, func(t *scene) {
		claim := waiting("long"+rand.Text(), rand.Text())
		loses.Store(true)
		claims, wakes := last(t, a, b, claim)
		if loses.Load() {
			t.Fatalf("no answer was lost")
		}
		defer listen(t, b, claim, wakes)()
		for _, c := range claims {
			if len(wakes) > 0 {
				t.Errorf("woken before its turn")
			}
			release(t, a, c)
		}
		grantedAtTurn(t, b, claim, wakes)
		release(t, b, claim.Claim)
	})
}

// grantedAtTurn returns the grant of a claim that is to be woken.
func grantedAtTurn(t *scene, s driver.Store, claim driver.Ask, wakes <-chan driver.Grant) driver.Grant {
	t.Helper()
	select {
	case g := <-wakes:
		if g.OK {
			return g
		}
	case <-time.After(aWhile):
		t.missing("the claim is woken")
	}
	return granted(t, s, claim)
}

// wrote reports whether a transaction has written a key.
func wrote(r *etcdserverpb.TxnResponse) bool {
	return slices.ContainsFunc(r.Responses, func(op *etcdserverpb.ResponseOp) bool { return op.GetResponsePut() != nil })
}

// TestSlowLook has etcd take half of the time of a call for the first transaction. The call of a
// writer returns that the key is not free, and the next call joins the queue without a look. A reader
// always looks, so its call joins.
func TestSlowLook(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	var writes atomic.Int64
	const limit = 3 * time.Second
	b, prefix := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, conn, opts...)
		if r, ok := reply.(*etcdserverpb.TxnResponse); ok {
			if slow.Swap(false) {
				began := time.Now()
				servers.Until(t, "half of the time of the call", func() bool { return time.Since(began) > limit/2 })
			}
			if wrote(r) {
				writes.Add(1)
			}
		}
		return err
	})
	a := openStore(t, shared.URL()+"?prefix="+prefix)
	for weight, want := range map[int64]int64{driver.MaxWeight: 0, 1: 1} {
		inTime(t, func(t *scene) {
			key := rand.Text()
			holder, claim := exclusive(key, "holder"+key), waiting(key, "claim"+key)
			claim.Weight = weight
			granted(t, a, holder)
			slow.Store(true)
			writes.Store(0)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			g, err := b.Acquire(ctx, claim)
			if err != nil || g.OK {
				t.Errorf("the call returned %+v, %v; want a refusal", g, err)
			}
			if n := writes.Load(); n != want {
				t.Errorf("the call of weight %d wrote %d claims after half of its time, want %d", weight, n, want)
			}
			t.begin()
			if refused(t, b, claim); writes.Load() != 1 {
				t.Errorf("both calls of weight %d wrote %d claims, want 1", weight, writes.Load())
			}
			release(t, a, holder.Claim)
			granted(t, b, claim)
			release(t, b, claim.Claim)
		})
	}
}

// TestSpanInLongQueue has a claim ask for more tokens while it waits in a long queue: the grant has
// them.
func TestSpanInLongQueue(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()), openStore(t, shared.URL())
	inTime(t, func(t *scene) {
		claim := waiting("long"+rand.Text(), rand.Text())
		claims, wakes := last(t, a, b, claim)
		defer listen(t, b, claim, wakes)()
		claim.Span = driver.MaxSpan
		refused(t, b, claim)
		for _, c := range claims {
			release(t, a, c)
		}
		if g := grantedAtTurn(t, b, claim, wakes); g.Span != driver.MaxSpan {
			t.Errorf("granted %d tokens, want %d", g.Span, driver.MaxSpan)
		}
		release(t, b, claim.Claim)
	})
}

// TestFolderOfLongQueue has a client watch the folder of a key, and then join a long queue: it
// watches a single claim from then on, so that releases far ahead are no events.
func TestFolderOfLongQueue(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		e := servers.StartEtcd(t.T) // which counts no events of an earlier scene
		var sent atomic.Int64
		b, prefix := interceptedAt(t, e, counting(&sent))
		a := openStore(t, e.URL()+"?prefix="+prefix)
		claim := waiting("key", "last")
		wakes := make(chan driver.Grant, 100)
		defer watch(t, b, claim.Claim, func(g driver.Grant) { wakes <- g })()
		claims, _ := last(t, a, b, claim)
		for timeout := time.After(aWhile); sent.Load() < 3 || e.Metric("etcd_debugging_mvcc_watcher_total") != 1; {
			select {
			case <-timeout:
				t.missing("the watch of a single claim")
			default:
			}
		}
		before := e.Metric("etcd_debugging_mvcc_events_total")
		for _, c := range claims[:ahead-1] {
			release(t, a, c)
		}
		if events := e.Metric("etcd_debugging_mvcc_events_total") - before; events > 0 {
			t.Errorf("%v events for releases far ahead", events)
		}
		release(t, a, claims[ahead-1])
		select {
		case g := <-wakes:
			if !g.OK && !asked(t, b, claim).OK {
				t.Errorf("woken too early")
			}
		case <-time.After(aWhile):
			t.missing("the last claim is woken")
		}
	})
}

// TestLostPlace deletes a waiting claim and the claim ahead by hand. The waiter queues again, behind
// the claim that was behind, and under a lease that ends soon after the waiter.
func TestLostPlace(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	inTime(t, func(t *scene) {
		prefix := rand.Text() + "/"
		a, b := openStore(t, shared.URL()+"?prefix="+prefix), openStore(t, shared.URL()+"?prefix="+prefix)
		granted(t, a, exclusive("key", "holder"))
		t.begin()
		waiter := waiting("key", "waiter")
		refused(t, b, waiter)
		refused(t, a, waiting("key", "behind"))
		kvs := under(t, c, prefix+"claims/").Kvs
		slices.SortFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
		for _, kv := range kvs[:2] {
			if _, err := c.Delete(t.Context(), string(kv.Key)); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, b, waiter)
		kvs = under(t, c, prefix+"claims/").Kvs
		if len(kvs) != 2 {
			t.Fatalf("%d claims, want those of the waiter and of the claim that was behind", len(kvs))
		}
		last := slices.MaxFunc(kvs, func(a, b *mvccpb.KeyValue) int { return cmp.Compare(a.CreateRevision, b.CreateRevision) })
		l, err := c.TimeToLive(t.Context(), clientv3.LeaseID(last.Lease))
		if err != nil || time.Duration(l.GrantedTTL)*time.Second > 2*waiter.Alive() {
			t.Errorf("the lease of the waiter is %+v, %v; want one of %v and a little more", l, err, waiter.Alive())
		}
	})
}

// counting counts the transactions of a client.
func counting(sent *atomic.Int64) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.TxnRequest); ok {
			sent.Add(1)
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}
