package grpclock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// An outage is what fences in a database may have.
type outage struct{}

func (outage) Check(context.Context, string, uint64, func() error) error {
	return errors.New("connection refused by 10.0.0.7")
}

// fenced is a server that checks tokens, and what its handlers were given.
func fenced(t *testing.T, fences Fences, key KeyFunc) (*client, chan string) {
	seen := make(chan string, 10)
	tell := func(ctx context.Context) error {
		key, token, err := Token(ctx)
		seen <- key + " " + strconv.FormatUint(token, 10)
		return err
	}
	c := serve(t, &service{
		unary:  func(ctx context.Context, _ *pb.SimpleRequest) error { return tell(ctx) },
		stream: func(s chat) error { return tell(s.Context()) },
	}, grpc.ChainUnaryInterceptor(UnaryServerFence(fences, key)), grpc.ChainStreamInterceptor(StreamServerFence(fences, key)))
	return c, seen
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
	c, seen := fenced(t, &fence.Memory{}, byBody)
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

	// A forwarded token makes place for the caller's own token.
	err = second.Do(paused, key, func(ctx context.Context) error { return c.call(ctx, key) })
	if err != nil {
		t.Error(err)
	}
}

func TestWrongTokens(t *testing.T) {
	t.Parallel()
	c, _ := fenced(t, &fence.Memory{}, nil)
	ctx := background(t)
	refused(t, c.call(ctx, "k"), codes.InvalidArgument, TokenMissing)
	for name, entries := range map[string][]string{
		"zero":     {keyEntry, "k", tokenEntry, "0"},
		"negative": {keyEntry, "k", tokenEntry, "-1"},
		"word":     {keyEntry, "k", tokenEntry, "many"},
		"huge":     {keyEntry, "k", tokenEntry, "9223372036854775808"},
		"no key":   {tokenEntry, "1"},
		"no token": {keyEntry, "k"},
		"two":      {keyEntry, "k", tokenEntry, "1", tokenEntry, "2"},
		"long key": {keyEntry, string(make([]byte, 513)), tokenEntry, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.call(metadata.AppendToOutgoingContext(ctx, entries...), "k"), codes.InvalidArgument, TokenInvalid)
		})
	}
	one := metadata.AppendToOutgoingContext(ctx, keyEntry, "k", tokenEntry, "1")
	if err := c.call(one, ""); err != nil {
		t.Error(err)
	}
	none, _ := fenced(t, nil, nil)
	refused(t, none.call(one, ""), codes.Internal, LockInvalid)
	broken, _ := fenced(t, outage{}, nil)
	err := broken.call(one, "")
	refused(t, err, codes.Unavailable, StoreUnreachable)
	if strings.Contains(err.Error(), "10.0.0.7") {
		t.Errorf("the caller is told of the inside of the server: %v", err)
	}
}

// TestChain sends on, from a handler, the token of the lock that its own call has.
func TestChain(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, nil)
	back, seen := fenced(t, &fence.Memory{}, byBody)
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

func (s tokenless) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, a)
	g.Fence, g.Span = 0, 0
	return g, err
}

func TestNoTokens(t *testing.T) {
	t.Parallel()
	locks := closing(t, must.Get(holdfast.New(tokenless{memlock.New()}, nil)))
	c, _ := fenced(t, &fence.Memory{}, nil)
	err := locks.Do(background(t), "k", func(ctx context.Context) error { return c.call(ctx, "k") })
	if !errors.Is(err, holdfast.ErrNotFenced) {
		t.Errorf("%v, want ErrNotFenced", err)
	}
}
