package grpclock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/memlock"
)

// highest are Fences in a map.
type highest struct {
	mu   sync.Mutex
	of   map[string]uint64
	fail error
}

func (h *highest) Check(_ context.Context, key string, token uint64, write func() error) error {
	if err := h.judge(key, token); err != nil {
		return err
	}
	return write()
}

func (h *highest) judge(key string, token uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		return h.fail
	}
	if h.of[key] > token {
		return &fence.OutdatedError{Key: key, Token: token, Highest: h.of[key]}
	}
	h.of[key] = token
	return nil
}

// fenced is a server that checks tokens, and what its handlers were given.
func fenced(t *testing.T, key KeyFunc) (*client, *highest, chan string) {
	seen := make(chan string, 10)
	tell := func(ctx context.Context) error {
		key, token, err := Token(ctx)
		seen <- key + " " + strconv.FormatUint(token, 10)
		return err
	}
	fences := &highest{of: make(map[string]uint64)}
	c := serve(t, &service{
		unary:  func(ctx context.Context, _ *pb.SimpleRequest) error { return tell(ctx) },
		stream: func(s chat) error { return tell(s.Context()) },
	}, grpc.ChainUnaryInterceptor(UnaryServerFence(fences, key)), grpc.ChainStreamInterceptor(StreamServerFence(fences, key)))
	return c, fences, seen
}

// talkOnce is call as a stream.
func (c *client) talkOnce(ctx context.Context, key string) error {
	stream, err := c.talk(ctx, key)
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

func TestTokens(t *testing.T) {
	t.Parallel()
	// The second Locker is another process: its store is the same.
	first, second := inSharedMemory(t), inSharedMemory(t)
	c, _, seen := fenced(t, byBody)
	ctx := background(t)
	const key = "account/ä"
	lock, err := first.Lock(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	token := lock.Fence()
	held := lock.Context(ctx)
	if err := c.call(held, key); err != nil {
		t.Error(err)
	}
	if got, want := await(t, "call", seen), key+" "+strconv.FormatUint(token, 10); got != want {
		t.Errorf("the handler got %q, want %q", got, want)
	}
	if err := c.call(held, ""); err != nil {
		t.Errorf("a call that needs no token: %v", err)
	}
	refused(t, c.call(held, "account/43"), codes.InvalidArgument, TokenInvalid)
	refused(t, c.call(ctx, key), codes.InvalidArgument, TokenMissing)
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}

	late := context.WithoutCancel(held) // of one who did not look
	if r := refused(t, c.call(late, key), codes.Aborted, LockLost); r.Key != key {
		t.Errorf("%+v; want the key", r)
	}
	err = second.Do(ctx, key, func(ctx context.Context) error { return c.call(ctx, key) })
	if err != nil {
		t.Error(err)
	}
	paused := metadata.AppendToOutgoingContext(ctx, keyEntry, key, tokenEntry, strconv.FormatUint(token, 10))
	refused(t, c.call(paused, key), codes.FailedPrecondition, TokenOutdated)
	refused(t, c.talkOnce(paused, key), codes.FailedPrecondition, TokenOutdated)

	// What was passed on from another's call makes place for one's own.
	err = second.Do(paused, key, func(ctx context.Context) error { return c.call(ctx, key) })
	if err != nil {
		t.Error(err)
	}
}

func TestWrongTokens(t *testing.T) {
	t.Parallel()
	c, fences, _ := fenced(t, Required(TokenKey))
	ctx := background(t)
	refused(t, c.call(ctx, "k"), codes.InvalidArgument, KeyInvalid)
	for name, entries := range map[string][]string{
		"zero":     {keyEntry, "k", tokenEntry, "0"},
		"negative": {keyEntry, "k", tokenEntry, "-1"},
		"word":     {keyEntry, "k", tokenEntry, "many"},
		"huge":     {keyEntry, "k", tokenEntry, "18446744073709551616"},
		"no key":   {tokenEntry, "1"},
		"no token": {keyEntry, "k"},
		"two":      {keyEntry, "k", tokenEntry, "1", tokenEntry, "2"},
		"long key": {keyEntry, string(make([]byte, 513)), tokenEntry, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.call(metadata.AppendToOutgoingContext(ctx, entries...), ""), codes.InvalidArgument, KeyInvalid)
		})
	}
	one := metadata.AppendToOutgoingContext(ctx, keyEntry, "k", tokenEntry, "1")
	if err := c.call(one, ""); err != nil {
		t.Error(err)
	}
	fences.mu.Lock()
	fences.fail = errors.New("connection refused by 10.0.0.7")
	fences.mu.Unlock()
	err := c.call(one, "")
	refused(t, err, codes.Unavailable, StoreUnreachable)
	if text := err.Error(); strings.Contains(text, "10.0.0.7") {
		t.Errorf("the caller is told of the inside of the server: %s", text)
	}
	strict, _, _ := fenced(t, byBody)
	refused(t, strict.call(metadata.AppendToOutgoingContext(ctx, keyEntry, "k", tokenEntry, "x"), "k"), codes.InvalidArgument, TokenInvalid)
}

// TestChain sends on, from a handler, the token of the lock that its own call has.
func TestChain(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, nil)
	back, _, seen := fenced(t, byBody)
	front := serve(t, &service{unary: func(ctx context.Context, req *pb.SimpleRequest) error {
		return back.call(ctx, string(req.GetPayload().GetBody()))
	}}, guarded(locks, byBody, nil)...)
	if err := front.call(background(t), "k"); err != nil {
		t.Error(err)
	}
	if got := await(t, "call", seen); got == "k 0" || got[:2] != "k " {
		t.Errorf("the server behind got %q", got)
	}
}

// A tokenless store is one like a session in a database.
type tokenless struct{ *memlock.Store }

func (s tokenless) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, c)
	g.Fence, g.Span = 0, 0
	return g, err
}

// TestNoTokens: a lock of a store without tokens sends nothing, so that a server
// which wants one refuses.
func TestNoTokens(t *testing.T) {
	t.Parallel()
	locks := closing(t, holdfast.New(tokenless{memlock.New()}, nil))
	c, _, _ := fenced(t, byBody)
	err := locks.Do(background(t), "k", func(ctx context.Context) error { return c.call(ctx, "k") })
	refused(t, err, codes.InvalidArgument, TokenMissing)
}
