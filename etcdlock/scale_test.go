package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// scale is how many locks a test has.
func scale() int {
	if testing.Short() {
		return 200
	}
	return 10_000
}

// TestNothingIsLeft locks and unlocks many keys, some of them with others waiting, and
// counts what etcd and this process still have of it. Worth 10 s: a leak shows in no other
// test.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	c := admin(t, e.Addr())
	under(t, c, etcdlock.DefaultPrefix) // It has what it needs by now.
	goroutines := servers.Goroutines(t)
	const lanes = 50
	n := scale()
	a, b := openLocker(t, e.URL(), nil), openLocker(t, e.URL(), nil)
	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			for i := lane; i < n; i += lanes {
				if err := pass(t.Context(), a, b, fmt.Sprint("key", i), i%100 < lanes && i/100%10 == 0); err != nil {
					t.Errorf("no. %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	servers.Await(t, "end of all claims", func() error {
		if r := under(t, c, etcdlock.DefaultPrefix+"claims/"); r.Count != 0 {
			return fmt.Errorf("%d are left, such as %s", r.Count, r.Kvs[0].Key)
		}
		return nil
	})
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	servers.Await(t, "end of all leases, watches and goroutines", func() error {
		r, err := c.Leases(t.Context())
		if err != nil {
			return err
		}
		if len(r.Leases) > 0 {
			return fmt.Errorf("leases are left: %v", r.Leases)
		}
		if r := under(t, c, etcdlock.DefaultPrefix+"last/"); r.Count != 0 {
			return fmt.Errorf("%d names of claims are left, such as %s", r.Count, r.Kvs[0].Key)
		}
		if w := e.Metric("etcd_debugging_mvcc_watcher_total"); w != 0 {
			return fmt.Errorf("%v watches are left", w)
		}
		if now := goroutines(); now > 1 {
			return fmt.Errorf("%d goroutines are left beside the test's own", now-1)
		}
		return nil
	})
}

// pass locks a key in a, and hands it over to b if somebody is to wait.
func pass(ctx context.Context, a, b *holdfast.Locker, key string, contended bool) error {
	l, err := servers.Patient(ctx, a.Lock, key)
	if err != nil {
		return err
	}
	if !contended {
		return unlock(l)
	}
	done := make(chan error, 1)
	go func() {
		l, err := servers.Patient(ctx, b.Lock, key)
		if err == nil {
			err = unlock(l)
		}
		done <- err
	}()
	for {
		hs, err := a.Holders(ctx, key)
		late := errors.Is(err, os.ErrDeadlineExceeded)
		if err != nil && !late || len(hs) == 2 || len(done) > 0 {
			return errors.Join(err, unlock(l), <-done)
		}
	}
}

// beating are the streams by which a client keeps leases alive.
type beating struct {
	mu   sync.Mutex
	all  []context.Context
	most int // at the same time
}

func (b *beating) open(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if strings.HasSuffix(method, "/LeaseKeepAlive") {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.all = slices.DeleteFunc(append(b.all, ctx), func(ctx context.Context) bool { return ctx.Err() != nil })
		b.most = max(b.most, len(b.all))
	}
	return open(ctx, desc, conn, method, opts...)
}

// TestManyHeld holds many locks, and counts what that costs: one lease, one stream that
// keeps it alive, and no goroutine each.
func TestManyHeld(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	c := admin(t, e.Addr())
	goroutines := servers.Goroutines(t)
	streams := new(beating)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + e.Addr()}, Logger: zap.NewNop(), DialTimeout: patience,
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(streams.open)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	const lanes = 50
	n := scale()
	var mu sync.Mutex
	unrenewed := make(map[string]bool, n)
	for i := range n {
		unrenewed[fmt.Sprint("key", i)] = true
	}
	settled := func(e holdfast.Event) {
		mu.Lock()
		defer mu.Unlock()
		delete(unrenewed, e.Key)
	}
	trace := &holdfast.Trace{Renewed: settled, Lost: settled}
	lk := must.Get(holdfast.New(must.Get(etcdlock.New(client, nil)), &holdfast.Options{TTL: 15 * time.Second, Trace: trace}))
	t.Cleanup(func() {
		if err := unlocking.Release(lk.Close); err != nil {
			t.Error(err)
		}
	})
	var all sync.WaitGroup
	held := make([]*holdfast.Lock, n)
	for lane := range lanes {
		all.Go(func() {
			for i := lane; i < n; i += lanes {
				var err error
				if held[i], err = servers.Patient(t.Context(), lk.Lock, fmt.Sprint("key", i)); err != nil {
					t.Errorf("no. %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	servers.Await(t, "the end of the goroutines of the calls", func() error {
		if now := goroutines(); now > n/2 {
			return fmt.Errorf("%d goroutines, and %d locks are held", now, n)
		}
		return nil
	})
	const few = 10 // One, on a machine that is not slow.
	if r, err := c.Leases(t.Context()); err != nil || len(r.Leases) > few {
		t.Errorf("leases: %v, %v; want one", r, err)
	}
	servers.Until(t, "each lock to be renewed, or lost", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(unrenewed) == 0
	})
	streams.mu.Lock()
	if streams.most > few {
		t.Errorf("%d streams keep the lease alive, want one", streams.most)
	}
	streams.mu.Unlock()
	lost := 0
	for _, l := range held {
		if l.Err() != nil {
			lost++
		}
	}
	if lost > n/2 { // and not one, on a machine that is slow
		t.Errorf("%d of %d locks were lost in time, such as by %v", lost, n, held[0].Err())
	}
	for lane := range lanes { // Close, which is in more of a hurry, has none left.
		all.Go(func() {
			for i := lane; i < n; i += lanes {
				if err := unlock(held[i]); err != nil && !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("no. %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
}
