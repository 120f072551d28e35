package grpclock

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
	_ "github.com/holdfast-go/holdfast/redislock"
)

func inRedis(t *testing.T, addr string) *holdfast.Locker {
	t.Helper()
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, "redis://"+addr, &holdfast.Options{TTL: 20 * time.Second}) // which a busy machine can keep
	})
	t.Cleanup(func() { locks.Close() }) // says so if Redis has gone
	return locks
}

// TestServersTakeTurns lets three servers, each with a connection of its own, work
// on the same key.
func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	var inside, calls, beside, lost atomic.Int64
	s := &service{unary: func(ctx context.Context, _ *pb.SimpleRequest) error {
		defer inside.Add(-1)
		if inside.Add(1) != 1 {
			beside.Add(1)
		}
		calls.Add(1)
		return ctx.Err()
	}}
	var clients []*client
	for range 3 {
		clients = append(clients, serve(t, s, guarded(inRedis(t, r.Addr()), byBody, waiting(patience))...))
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		for range 10 {
			wg.Go(func() {
				for range 5 {
					err := c.insist(background(t), "k")
					if r, _ := RefusalOf(err); r.Reason == LockLost { // the handler has run
						lost.Add(1)
					} else if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if n := lost.Load(); n > 0 {
		unproved.Logf(t, "%d calls lost the lock, and %d ran beside another", n, beside.Load())
	} else if n := beside.Load(); n > 0 {
		t.Errorf("%d calls ran beside another", n)
	}
	if n := calls.Load(); n != 150 {
		t.Errorf("%d calls ran, want 150", n)
	}
}

// insist is call, and calls again as long as the server has had no answer of its store: the
// handler has not run then.
func (c *client) insist(ctx context.Context, key string) error {
	for {
		err := c.call(ctx, key)
		if r, _ := RefusalOf(err); r.Reason != StoreUnreachable || ctx.Err() != nil {
			return err
		}
	}
}

// logged is a log that handlers write at the same time.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
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
	var text logged
	opts := Options{Logger: slog.New(slog.NewTextHandler(&text, nil))}
	closed := serve(t, s, guarded(locks, byBody, &opts)...)
	opts.FailOpen = true
	open := serve(t, s, guarded(locks, byBody, &opts)...)
	ctx := background(t)
	r.Kill()
	refused(t, closed.call(ctx, "k"), codes.Unavailable, StoreUnreachable)
	refused(t, closed.talkOnce(ctx, "k"), codes.Unavailable, StoreUnreachable)
	if err := open.call(ctx, "k"); err != nil {
		t.Errorf("a server that goes on without: %v", err)
	}
	for _, want := range []string{"call is refused", "call runs without its lock", pb.TestService_UnaryCall_FullMethodName} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log does not say %q: %s", want, text.String())
		}
	}
}
