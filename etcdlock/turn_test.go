package etcdlock_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sim"
)

// ahead is how many claims are ahead of the last claim in these tests.
const ahead = 20

// last queues a holder and many waiting claims by one store, and then a claim by another
// store. It returns the claims ahead, and where the claim is woken once watched.
func last(t *scene, a, b driver.Store, claim driver.Ask) (claims []driver.Claim, wakes chan driver.Grant) {
	t.Helper()
	wakes = make(chan driver.Grant, 100)
	holder := exclusive(claim.Key, "holder"+claim.Key)
	granted(t, a, holder)
	claims = append(claims, holder.Claim)
	t.begin()
	for i := range ahead - 1 {
		w := waiting(claim.Key, fmt.Sprint("waiter", i, claim.Key))
		refused(t, a, w)
		claims = append(claims, w.Claim)
	}
	refused(t, b, claim)
	return claims, wakes
}

// listen watches for a claim that was refused.
func listen(t *scene, s driver.Store, claim driver.Ask, wakes chan<- driver.Grant) (stop func()) {
	t.Helper()
	stop = watch(t, s, claim.Claim, func(g driver.Grant) { wakes <- g })
	refused(t, s, claim)
	return stop
}

// TestLongQueue releases the claims ahead of a claim in a long queue, in the order of the
// queue, from its end, and in any order: the claim is woken and granted then, not before.
func TestLongQueue(t *testing.T) {
	t.Parallel()
	random := mathrand.New(mathrand.NewPCG(sim.Seed(t), 0))
	for name, order := range map[string]func(i int) int{
		"from the front": func(i int) int { return 0 },
		"from the end":   func(i int) int { return ahead - 1 - i },

		// The claim just ahead leaves before the watch begins, the rest from the end.
		"before the watch": func(i int) int { return ahead - 1 - i },
		"in any order":     func(i int) int { return random.IntN(ahead - i) },

		// The claim is watched before it joins, by the whole folder.
		"of the folder":              func(i int) int { return 0 },
		"of the folder from the end": func(i int) int { return ahead - 1 - i },
	} {
		for kind, weight := range map[string]int64{"writer": driver.MaxWeight, "reader": 1} {
			early, folder := name == "before the watch", strings.HasPrefix(name, "of the folder")
			t.Run(name+", "+kind, func(t *testing.T) {
				a, b := openStore(t, shared.URL()), openStore(t, shared.URL())
				inTime(t, func(t *scene) {
					claim := waiting("long"+rand.Text(), rand.Text())
					claim.Weight = weight
					watched := make(chan driver.Grant, 100)
					if folder {
						defer watch(t, b, claim.Claim, func(g driver.Grant) { watched <- g })()
					}
					claims, wakes := last(t, a, b, claim)
					if early {
						release(t, a, claims[ahead-1])
					}
					if folder {
						wakes = watched
					} else {
						defer listen(t, b, claim, wakes)()
					}
					defer func() { _ = b.Release(context.Background(), []driver.Release{{Claim: claim.Claim}}) }()
					for i := range ahead {
						if i == ahead-1 {
							refused(t, b, claim)
						}
						n := order(i)
						if early && i == 0 {
							claims = claims[:ahead-1]
							continue
						}
						release(t, a, claims[n])
						claims = append(claims[:n:n], claims[n+1:]...)
					}
					for timeout := time.After(aWhile); ; {
						select {
						case g := <-wakes:
							if g.OK || asked(t, b, claim).OK {
								return
							}
						case <-timeout:
							t.missing("the last claim is woken")
						}
					}
				})
			})
		}
	}
}

// TestLongQueueDeleted deletes a claim in a long queue by hand, and then the claims ahead:
// the claim is woken to request again, without a grant.
func TestLongQueueDeleted(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	inTime(t, func(t *scene) {
		prefix := rand.Text() + "/"
		a, b := openStore(t, shared.URL()+"?prefix="+prefix), openStore(t, shared.URL()+"?prefix="+prefix)
		claim := waiting("key", "last")
		_, wakes := last(t, a, b, claim)
		defer listen(t, b, claim, wakes)()
		kvs := under(t, c, prefix+"claims/").Kvs
		own := kvs[0]
		for _, kv := range kvs {
			if kv.CreateRevision > own.CreateRevision {
				own = kv
			}
		}
		for _, name := range []string{string(own.Key), prefix + "claims/"} {
			if _, err := c.Delete(t.Context(), name, clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case g := <-wakes:
			if g.OK {
				t.Errorf("a claim without a place was pushed %+v", g)
			}
		case <-time.After(aWhile):
			t.missing("the claim is woken")
		}
	})
}

// TestKeptInLongQueue queues a claim behind many others: its place lasts for longer than the
// places at the front, and the claim may ask less often.
func TestKeptInLongQueue(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()), openStore(t, shared.URL())
	inTime(t, func(t *scene) {
		claim := waiting("long"+rand.Text(), rand.Text())
		claims, wakes := last(t, a, b, claim)
		defer listen(t, b, claim, wakes)()
		if g, want := refused(t, b, claim), 3*claim.Alive(); g.Kept != want {
			t.Errorf("behind %d claims a place lasts %v, want %v", ahead, g.Kept, want)
		}
		front := driver.Ask{Claim: claims[1], Wait: true}
		if g := refused(t, a, front); g.Kept != 0 {
			t.Errorf("behind the holder a place lasts %v, want the usual time", g.Kept)
		}
	})
}

// TestHolderOfLongQueue releases the holder ahead of a claim in a long queue: the refusal of
// the claim names the holder before, and nobody after.
func TestHolderOfLongQueue(t *testing.T) {
	t.Parallel()
	a, b := openStore(t, shared.URL()), openStore(t, shared.URL())
	inTime(t, func(t *scene) {
		claim := waiting("long"+rand.Text(), rand.Text())
		claims, wakes := last(t, a, b, claim)
		defer listen(t, b, claim, wakes)()
		if g := refused(t, b, claim); g.Holder.ID != driver.PublicID(claims[0].ID) {
			t.Errorf("the refusal names %+v, want the holder", g.Holder)
		}
		release(t, a, claims[0])
		if g := refused(t, b, claim); g.Holder != (driver.Holder{}) {
			t.Errorf("the refusal names %+v, which has left", g.Holder)
		}
	})
}

// TestLongQueueReads has a claim wait in a long queue. Its requests write nothing, and have an
// operation that etcd answers only after it has asked the other members.
func TestLongQueueReads(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		var mu sync.Mutex
		var sent []*etcdserverpb.TxnRequest
		b, prefix := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			if r, ok := req.(*etcdserverpb.TxnRequest); ok {
				mu.Lock()
				sent = append(sent, r)
				mu.Unlock()
			}
			return invoke(ctx, method, req, reply, conn, opts...)
		})
		a := openStore(t, shared.URL()+"?prefix="+prefix)
		claim := waiting("long"+rand.Text(), rand.Text())
		_, wakes := last(t, a, b, claim)
		mu.Lock()
		sent = nil
		mu.Unlock()
		defer listen(t, b, claim, wakes)()
		servers.Until(t, "a request of the heartbeat and one of the watch", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(sent) > 1
		})
		mu.Lock()
		defer mu.Unlock()
		for _, r := range sent {
			ops := slices.Concat(r.Success, r.Failure)
			if len(ops) == 0 || slices.ContainsFunc(ops, func(op *etcdserverpb.RequestOp) bool {
				read := op.GetRequestRange()
				return read == nil || read.Serializable
			}) {
				t.Errorf("sent %v", r)
			}
		}
	})
}

// TestLongQueueAfterError has a request of a claim in a long queue fail at the end of its
// watch: once refused again, the claim is woken at its turn.
func TestLongQueueAfterError(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	b, prefix := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.TxnRequest); ok && broken.Load() {
			return rpctypes.ErrGRPCPermissionDenied
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	a := openStore(t, shared.URL()+"?prefix="+prefix)
	inTime(t, func(t *scene) {
		claim := waiting("long"+rand.Text(), rand.Text())
		claims, wakes := last(t, a, b, claim)
		broken.Store(true)
		defer broken.Store(false)
		defer watch(t, b, claim.Claim, func(g driver.Grant) { wakes <- g })()
		wake := func(why string) {
			t.Helper()
			select {
			case <-wakes:
			case <-time.After(aWhile):
				t.missing("wake-up " + why)
			}
		}
		wake("after the error")
		broken.Store(false)
		refused(t, b, claim)
		for _, c := range claims {
			release(t, a, c)
		}
		wake("at the turn")
	})
}

// TestLongQueueStopped stops the watch of a claim in a long queue during a request of the
// watch: the claim is woken no more.
func TestLongQueueStopped(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		b, by, prefix := delayed(t)
		a := openStore(t, shared.URL()+"?prefix="+prefix)
		claim := waiting("long"+rand.Text(), rand.Text())
		last(t, a, b, claim)
		by.hold(all)
		var stopped, late atomic.Bool
		stop := watch(t, b, claim.Claim, func(driver.Grant) { late.Store(late.Load() || stopped.Load()) })
		servers.Until(t, "a request of the watch", func() bool { return by.attempts() > 0 })
		stop()
		stopped.Store(true)
		if err := b.Close(); err != nil { // which ends what the watch has begun
			t.Error(err)
		}
		if late.Load() {
			t.Errorf("the claim was woken after the end of the watch")
		}
	})
}

// TestEventsOfLongQueue releases the claims ahead of a claim in a long queue: only the last
// release is an event for the claim.
func TestEventsOfLongQueue(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		e := servers.StartEtcd(t.T) // which counts no events of an earlier scene
		a, b := openStore(t, e.URL()), openStore(t, e.URL())
		claim := waiting("key", "last")
		claims, wakes := last(t, a, b, claim)
		defer listen(t, b, claim, wakes)()
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
			if g.OK || asked(t, b, claim).OK {
				return
			}
			t.Errorf("woken too early")
		case <-time.After(aWhile):
			t.missing("the last claim is woken")
		}
	})
}

// TestJoinLongQueue joins a long queue: of many claims ahead, etcd sends a few. The place lasts as
// long as behind all of them.
func TestJoinLongQueue(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		var sent atomic.Int64
		b, prefix := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			err := invoke(ctx, method, req, reply, conn, opts...)
			if r, ok := reply.(*etcdserverpb.TxnResponse); ok {
				for _, op := range r.Responses {
					sent.Add(int64(len(op.GetResponseRange().GetKvs())))
				}
			}
			return err
		})
		a := openStore(t, shared.URL()+"?prefix="+prefix)
		claim := waiting("long"+rand.Text(), rand.Text())
		granted(t, a, exclusive(claim.Key, "holder"+claim.Key))
		t.begin()
		for i := range 3 * ahead {
			refused(t, a, waiting(claim.Key, fmt.Sprint("waiter", i, claim.Key)))
		}
		sent.Store(0)
		if g, want := refused(t, b, claim), 4*claim.Alive(); g.Kept != want {
			t.Errorf("a place lasts %v, want %v", g.Kept, want)
		}
		if n := sent.Load(); n > 2*ahead {
			t.Errorf("etcd has sent %d claims, want a few, twice", n)
		}
	})
}
