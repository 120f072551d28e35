package etcdlock_test

import (
	"context"
	"errors"
	"strings"
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

// busy opens a store whose etcd does not answer transactions until it is told to.
func busy(t *testing.T) (s driver.Store, sent *atomic.Int64, begin, end func()) {
	var begun atomic.Bool
	sent, free := new(atomic.Int64), make(chan struct{})
	s, _ = intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.TxnRequest); ok && begun.Load() {
			sent.Add(1)
			select {
			case <-free:
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	return s, sent, func() { begun.Store(true) }, func() { close(free) }
}

// TestAcquireGoesOn asks a busy etcd for a claim again and again. etcd gets one request, and its
// answer is for the last caller.
func TestAcquireGoesOn(t *testing.T) {
	t.Parallel()
	s, sent, begin, end := busy(t)
	granted(t, s, exclusive("else", "else")) // so that there is a lease
	claim := exclusive("key", "mine")
	begin()
	cutShort(t, sent, 1, func(ctx context.Context) error {
		_, err := s.Acquire(ctx, claim)
		return err
	})
	if n := sent.Load(); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
	end()
	if g := granted(t, s, claim); g.TTL > claim.TTL {
		t.Errorf("granted for %v, want at most %v", g.TTL, claim.TTL)
	}
	if err := renew(t.Context(), s, claim.Claim); err != nil {
		t.Error(err)
	}
	release(t, s, claim.Claim)
}

// TestReleaseGoesOn releases a claim again and again at a busy etcd. It gets the request of the
// first Release, and one of the cleaner.
func TestReleaseGoesOn(t *testing.T) {
	t.Parallel()
	s, sent, begin, end := busy(t)
	claim := exclusive("key", "mine")
	granted(t, s, claim)
	begin()
	cutShort(t, sent, 1, func(ctx context.Context) error {
		return s.Release(ctx, []driver.Release{{Claim: claim.Claim}})[0]
	})
	if n := sent.Load(); n > 2 {
		t.Errorf("%d requests, want 2 at most", n)
	}
	end()
	release(t, s, claim.Claim)
	granted(t, s, exclusive("key", "next"))
}

// TestReleaseEndsAcquire releases a claim whose Acquire goes on. The claim does not hold after that,
// and its id is free.
func TestReleaseEndsAcquire(t *testing.T) {
	t.Parallel()
	s, sent, begin, end := busy(t)
	granted(t, s, exclusive("else", "else"))
	claim := exclusive("key", "mine")
	begin()
	cutShort(t, sent, 1, func(ctx context.Context) error {
		_, err := s.Acquire(ctx, claim)
		return err
	})
	end()
	_ = answered(t, func(ctx context.Context) error {
		return s.Release(ctx, []driver.Release{{Claim: claim.Claim, Late: true}})[0]
	})
	next := exclusive("key", "next")
	granted(t, s, next)
	release(t, s, next.Claim)
}

// TestTroubleIsTold asks an etcd that refuses for a while. A caller whose time ends learns why etcd
// did not grant the claim, also if the request of another call goes on.
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
	cutShort(t, &sent, 2, func(ctx context.Context) error {
		_, err := s.Acquire(ctx, exclusive("key", "mine"))
		if err == nil || !strings.Contains(err.Error(), "no room at the inn") {
			t.Errorf("%v, want the reason", err)
		}
		return err
	})
	refuses.Store(false)
	granted(t, s, exclusive("key", "mine"))
}
