package grpclock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	_ "github.com/holdfast-go/holdfast/ext/redislock"
)

func inRedis(t *testing.T, addr string) *holdfast.Locker {
	t.Helper()
	locks, err := holdfast.Open(t.Context(), "redis://"+addr, &holdfast.Options{TTL: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() }) // says so if Redis has gone
	return locks
}

// TestServersTakeTurns lets three servers, each with a connection of its own, work
// on the same key.
func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	var inside, calls atomic.Int64
	s := &service{unary: func(ctx context.Context, _ *pb.SimpleRequest) error {
		defer inside.Add(-1)
		if inside.Add(1) != 1 {
			return errors.New("two at once")
		}
		calls.Add(1)
		return ctx.Err()
	}}
	var clients []*client
	for range 3 {
		clients = append(clients, serve(t, s, guarded(inRedis(t, r.Addr()), byBody, &Options{Wait: patience})...))
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		for range 10 {
			wg.Go(func() {
				for range 5 {
					if err := c.call(background(t), "k"); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := calls.Load(); n != 150 {
		t.Errorf("%d calls ran, want 150", n)
	}
}

func TestStoreUnreachable(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	s := &service{unary: func(ctx context.Context, _ *pb.SimpleRequest) error {
		if _, ok := holdfast.FromContext(ctx); ok {
			return errors.New("there is a lock")
		}
		return nil
	}}
	locks := inRedis(t, r.Addr())
	var told atomic.Value
	closed := serve(t, s, guarded(locks, byBody, nil)...)
	open := serve(t, s, guarded(locks, byBody, &Options{FailOpen: func(_ context.Context, method string, err error) bool {
		told.Store(err)
		return method == pb.TestService_UnaryCall_FullMethodName
	}})...)
	ctx := background(t)
	r.Kill()
	refused(t, closed.call(ctx, "k"), codes.Unavailable, StoreUnreachable)
	if err := open.call(ctx, "k"); err != nil || told.Load() == nil {
		t.Errorf("a server that goes on without: %v, told %v", err, told.Load())
	}
	refused(t, open.talkOnce(ctx, "k"), codes.Unavailable, StoreUnreachable)
}
