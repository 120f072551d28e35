package etcdlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A stop is a request that a test lets go on.
type stop struct{ at, on chan struct{} }

func newStop() stop { return stop{make(chan struct{}), make(chan struct{})} }

// here waits for the test, until the test says go on or ends.
func (s stop) here(ctx context.Context) {
	select {
	case s.at <- struct{}{}:
	case <-ctx.Done():
		return
	}
	select {
	case <-s.on:
	case <-ctx.Done():
	}
}

// reached waits until the request is there.
func (s stop) reached(t *scene, what string) {
	t.Helper()
	select {
	case <-s.at:
	case <-time.After(aWhile):
		t.missing(what)
	}
}

// stopped is a key of contexts: the requests of a call that a test stops.
type stopped struct{}

// stopping opens a store. Of the calls with the key stopped, each request is told to stops.
func stopping(t testing.TB, stops func(ctx context.Context, n int64, txn *etcdserverpb.TxnRequest, invoke func() error) error) (s *etcdlock.Store, prefix string) {
	var requests atomic.Int64
	return intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		txn, _ := req.(*etcdserverpb.TxnRequest)
		next := func() error { return invoke(ctx, method, req, reply, conn, opts...) }
		if txn == nil || ctx.Value(stopped{}) == nil {
			return next()
		}
		return stops(ctx, requests.Add(1), txn, next)
	})
}

// vanishes waits until a claim is no longer in the queue, while another claim of the Store
// keeps the lease of both alive.
func vanishes(t testing.TB, s, other *etcdlock.Store, id, stays string) {
	t.Helper()
	servers.Await(t, "end of the claim "+id, func() error {
		refused(t, s, waiting("key", stays))
		hs, err := other.Holders(t.Context(), "key")
		for _, h := range hs {
			if h.Owner == id {
				err = errors.Join(err, errors.New("it is in the queue"))
			}
		}
		return err
	})
}

// TestReleasedDuringLook releases a claim while a second Acquire of the claim looks at the queue.
// The second Acquire does not join the queue anew.
func TestReleasedDuringLook(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	inTime(t, func(t *scene) {
		look := newStop()
		var joined atomic.Bool
		s, prefix := stopping(t, func(ctx context.Context, n int64, txn *etcdserverpb.TxnRequest, invoke func() error) error {
			if n == 1 {
				look.here(ctx)
			}
			if writes(txn) {
				joined.Store(true)
			}
			return invoke()
		})
		other := must.Get(etcdlock.New(c, &etcdlock.Options{Prefix: prefix}))
		defer other.Close()
		granted(t, other, exclusive("key", "holder"))
		t.begin()
		refused(t, s, waiting("key", "claim"))
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), stopped{}, true), patience)
		defer cancel()
		var second sync.WaitGroup
		second.Go(func() {
			if g, err := s.Acquire(ctx, waiting("key", "claim")); err == nil {
				t.Errorf("a released claim was answered %+v", g)
			}
		})
		look.reached(t, "the second Acquire looks")
		_ = answered(t, func(ctx context.Context) error {
			return s.Release(ctx, []driver.Release{{Claim: waiting("key", "claim").Claim}})[0]
		})
		close(look.on)
		second.Wait()
		if joined.Load() {
			t.Errorf("a released claim joined the queue")
		}
		vanishes(t, s, other, "claim", "stays")
	})
}

// TestRenamedDuringRelease releases a claim whose Acquire is about to give the claim another
// name. The Acquire does not join the queue by that name, of which the Release knows nothing.
func TestRenamedDuringRelease(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	inTime(t, func(t *scene) {
		look, tomb := newStop(), newStop()
		var looked, buried atomic.Bool
		s, prefix := stopping(t, func(ctx context.Context, n int64, txn *etcdserverpb.TxnRequest, invoke func() error) error {
			if strings.Contains(txn.String(), "released") && !buried.Swap(true) {
				tomb.here(ctx)
			}
			if n == 1 && !looked.Swap(true) {
				defer look.here(ctx)
			}
			return invoke()
		})
		other := must.Get(etcdlock.New(c, &etcdlock.Options{Prefix: prefix}))
		defer other.Close()
		granted(t, other, exclusive("key", "holder"))
		t.begin()
		refused(t, s, waiting("key", "before"))
		var left *mvccpb.KeyValue // is known to etcd, and no longer to the Store
		for _, kv := range under(t, c, prefix+"claims/key/").Kvs {
			if strings.Contains(string(kv.Value), `"before"`) {
				left = kv
			}
		}
		if left == nil {
			t.Fatalf("the claim is not in the queue")
		}
		_ = answered(t, func(ctx context.Context) error {
			return s.Release(ctx, []driver.Release{{Claim: waiting("key", "before").Claim}})[0]
		})
		if _, err := c.Put(t.Context(), string(left.Key), string(left.Value)); err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), stopped{}, true), patience)
		defer cancel()
		var acquire, release sync.WaitGroup
		acquire.Go(func() { _, _ = s.Acquire(ctx, waiting("key", "claim")) })
		look.reached(t, "the Acquire looks")
		release.Go(func() { s.Release(ctx, []driver.Release{{Claim: waiting("key", "claim").Claim, Late: true}}) })
		tomb.reached(t, "the release writes a tomb")
		close(look.on)
		acquire.Wait()
		close(tomb.on)
		release.Wait()
		vanishes(t, s, other, "claim", "stays")
	})
}
