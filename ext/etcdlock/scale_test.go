package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/etcdlock"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestNothingIsLeft locks and unlocks ten thousand keys, some of them with others
// waiting, and counts what etcd and this process still have of it.
func TestNothingIsLeft(t *testing.T) { // alone, because it counts goroutines
	e := servers.StartEtcd(t)
	c := admin(t, e.Addr())
	under(t, c, etcdlock.DefaultPrefix) // It has what it needs by now.
	before := runtime.NumGoroutine()
	const n, lanes = 10_000, 50
	a, err := holdfast.Open(t.Context(), e.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := holdfast.Open(t.Context(), e.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
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
	eventually(t, "end of all claims", func() error {
		if r := under(t, c, etcdlock.DefaultPrefix+"claims/"); r.Count != 0 {
			return fmt.Errorf("%d are left, such as %s", r.Count, r.Kvs[0].Key)
		}
		return nil
	})
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	eventually(t, "end of all leases, watches and goroutines", func() error {
		if r, err := c.Leases(t.Context()); err != nil || len(r.Leases) > 0 {
			return fmt.Errorf("leases are left: %v, %w", r.Leases, err)
		}
		if w := e.Metric("etcd_debugging_mvcc_watcher_total"); w != 0 {
			return fmt.Errorf("%v watches are left", w)
		}
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Errorf("%d goroutines are left, and %d were there before", now, before)
		}
		return nil
	})
}

// pass locks a key in a, and hands it over to b if somebody is to wait.
func pass(ctx context.Context, a, b *holdfast.Locker, key string, contended bool) error {
	l, err := patiently(ctx, a, key)
	if err != nil {
		return err
	}
	if !contended {
		return unlock(l)
	}
	done := make(chan error, 1)
	go func() {
		l, err := patiently(ctx, b, key)
		if err == nil {
			err = unlock(l)
		}
		done <- err
	}()
	for {
		hs, err := a.Holders(ctx, key)
		if err != nil || len(hs) == 2 {
			return errors.Join(err, unlock(l), <-done)
		}
	}
}

// unlock leaves to the background what is not answered in time.
func unlock(l *holdfast.Lock) error {
	err := l.Unlock()
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// patiently locks, and asks again if the server is slow.
func patiently(ctx context.Context, lk *holdfast.Locker, key string) (*holdfast.Lock, error) {
	for {
		l, err := lk.Lock(ctx, key)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return l, err
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

// TestTenThousandHeld holds as many locks, and counts what that costs: one lease,
// one stream that keeps it alive, and no goroutine each.
func TestTenThousandHeld(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	c := admin(t, e.Addr())
	streams := new(beating)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + e.Addr()}, Logger: zap.NewNop(), DialTimeout: patience,
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(streams.open)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	lk := holdfast.New(etcdlock.New(client, nil), &holdfast.Options{TTL: 15 * time.Second})
	t.Cleanup(func() {
		if err := lk.Close(); err != nil {
			t.Error(err)
		}
	})
	const n, lanes = 10_000, 50
	var all sync.WaitGroup
	before := runtime.NumGoroutine()
	held := make([]*holdfast.Lock, n)
	for lane := range lanes {
		all.Go(func() {
			for i := lane; i < n; i += lanes {
				var err error
				if held[i], err = patiently(t.Context(), lk, fmt.Sprint("key", i)); err != nil {
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
	if more := runtime.NumGoroutine() - before; more > n/2 { // other tests have some
		t.Errorf("%d goroutines for %d locks", more, n)
	}
	const few = 10 // One, on a machine that is not slow.
	if r, err := c.Leases(t.Context()); err != nil || len(r.Leases) > few {
		t.Errorf("leases: %v, %v; want one", r, err)
	}
	<-time.After(16 * time.Second) // They have been renewed by then, or are lost.
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
