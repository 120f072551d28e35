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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// cutShort makes a call several times that etcd does not answer in time, the first time until it has
// sent so many requests.
func cutShort(t *testing.T, sent *atomic.Int64, requests int64, call func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan error)
	go func() { first <- call(ctx) }()
	servers.Until(t, "the first request", func() bool { return sent.Load() >= requests })
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the call was cancelled", err)
	}
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that the time is over", err)
		}
		cancel()
	}
}

// A busyEtcd does not answer transactions until it is told to.
type busyEtcd struct {
	begun atomic.Bool
	free  chan struct{}
	sent  atomic.Int64 // transactions that had to wait
	wrote atomic.Int64 // those of them that etcd got, and that may create a claim
}

// busy opens a store with a busy etcd.
func busy(t testing.TB) (driver.Store, *busyEtcd) {
	e := &busyEtcd{free: make(chan struct{})}
	s, _ := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if txn, _ := req.(*etcdserverpb.TxnRequest); txn != nil && e.begun.Load() {
			e.sent.Add(1)
			select {
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			case <-e.free:
			}
			if writes(txn) {
				e.wrote.Add(1)
			}
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	return s, e
}

// TestAcquireGoesOn requests a claim from a busy etcd again and again. etcd gets the request of the
// first call, and the last call gets the answer.
func TestAcquireGoesOn(t *testing.T) {
	t.Parallel()
	s, etcd := busy(t)
	granted(t, s, exclusive("else", "else")) // so that there is a lease
	claim := exclusive("key", "mine")
	etcd.begun.Store(true)
	cutShort(t, &etcd.sent, 1, func(ctx context.Context) error {
		_, err := s.Acquire(ctx, claim)
		claim.Span = driver.MaxSpan
		return err
	})
	answer := make(chan driver.Grant)
	go func() { answer <- asked(t, s, claim) }()
	close(etcd.free)
	if g := <-answer; !g.OK || g.Span != driver.MaxSpan {
		t.Errorf("granted %+v, want as many tokens as the last call asked for", g)
	}
	if n := etcd.sent.Load(); n > 3 {
		t.Errorf("%d requests of seven calls, want that of the first", n)
	}
	if err := renew(t.Context(), s, claim.Claim); err != nil {
		t.Error(err)
	}
	release(t, s, claim.Claim)
}

// TestTermsChange requests a claim with other terms while a request to a busy etcd is under way. The
// first request ends, and the claim is in the queue of the key.
func TestTermsChange(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		s, etcd := busy(t)
		holder, try := exclusive("key", "other"), exclusive("key", "mine")
		claim := try
		claim.Wait = true
		granted(t, s, holder)
		etcd.begun.Store(true)
		var tried, waited sync.WaitGroup
		tried.Go(func() {
			_, _ = s.Acquire(t.Context(), try)
		})
		servers.Until(t, "the request of the first call", func() bool { return etcd.sent.Load() >= 1 })
		t.begin()
		waited.Go(func() {
			if g, err := s.Acquire(t.Context(), claim); g.OK || err != nil {
				t.Errorf("%+v, %v, want a refusal", g, err)
			}
		})
		began := time.Now()
		second := func() bool { return etcd.sent.Load() >= 2 }
		servers.Until(t, "the request of the second call", func() bool { return second() || time.Since(began) > aWhile })
		if !second() {
			t.missing("the request of the second call")
		}
		etcd.free <- struct{}{}
		tried.Wait()
		close(etcd.free)
		waited.Wait()
		next := exclusive("key", "next")
		next.Wait = true
		refused(t, s, next)
		release(t, s, holder.Claim)
		refused(t, s, next)
		granted(t, s, claim)
	})
}

// TestReleaseEndsAcquire releases a claim whose Acquire goes on. The Acquire ends, and sends nothing
// any more.
func TestReleaseEndsAcquire(t *testing.T) {
	t.Parallel()
	s, etcd := busy(t)
	granted(t, s, exclusive("else", "else"))
	claim := exclusive("key", "mine")
	etcd.begun.Store(true)
	cutShort(t, &etcd.sent, 1, func(ctx context.Context) error {
		_, err := s.Acquire(ctx, claim)
		return err
	})
	before := etcd.sent.Load()
	var last, released sync.WaitGroup
	last.Go(func() {
		if g, err := s.Acquire(t.Context(), claim); g.OK || errors.Is(err, context.Canceled) {
			t.Errorf("a released claim is answered %+v, %v", g, err)
		}
	})
	released.Go(func() {
		_ = answered(t, func(ctx context.Context) error {
			return s.Release(ctx, []driver.Release{{Claim: claim.Claim, Late: true}})[0]
		})
	})
	servers.Until(t, "the request of the release", func() bool { return etcd.sent.Load() > before })
	last.Wait()
	close(etcd.free)
	released.Wait()
	if n := etcd.wrote.Load(); n > 0 {
		t.Errorf("%d requests for a released claim", n)
	}
	granted(t, s, exclusive("key", "next"))
}

// TestTroubleIsTold has etcd refuse requests for a while. A caller whose time ends learns the reason.
func TestTroubleIsTold(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	var sent atomic.Int64
	s, _ := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.TxnRequest); ok && refuses.Load() {
			sent.Add(1)
			return status.Error(codes.Unavailable, "no room at the inn")
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	granted(t, s, exclusive("else", "else"))
	refuses.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan error)
	go func() {
		_, err := s.Acquire(ctx, exclusive("key", "mine"))
		first <- err
	}()
	servers.Until(t, "two requests", func() bool { return sent.Load() >= 2 })
	cancel()
	if err := <-first; err == nil || !strings.Contains(err.Error(), "no room at the inn") {
		t.Errorf("%v, want the reason", err)
	}
	refuses.Store(false)
	granted(t, s, exclusive("key", "mine"))
}

// TestFewAttempts makes a call that etcd never hears of. The only member gets one request, however
// long it does not answer.
func TestFewAttempts(t *testing.T) {
	t.Parallel()
	s, by, _ := delayed(t)
	granted(t, s, exclusive("else", "else")) // so that there is a lease
	by.hold(all)
	defer by.hold(nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Acquire(ctx, exclusive("key", "mine")); err == nil {
		t.Error("granted by an etcd that heard nothing")
	}
	servers.Until(t, "an attempt", func() bool { return by.attempts() > 0 })
	if n := by.attempts(); n != 1 {
		t.Errorf("%d attempts", n)
	}
}
