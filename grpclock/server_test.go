package grpclock

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
)

// A held service holds its calls until the test lets them go on.
type held struct {
	*service
	began chan context.Context
	end   chan struct{}
}

func holding() *held {
	h := &held{&service{}, make(chan context.Context, 10), make(chan struct{})}
	h.unary = func(ctx context.Context, _ *pb.SimpleRequest) error {
		h.began <- ctx
		select {
		case <-h.end:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	h.stream = func(s chat) error { return h.unary(s.Context(), nil) }
	return h
}

// begin makes a call in the background and waits until its handler runs.
func (h *held) begin(t *testing.T, call func() error) (ctx context.Context, done chan error) {
	t.Helper()
	done = make(chan error, 1)
	go func() { done <- call() }()
	return await(t, "call that has begun", h.began), done
}

func TestHeldIsRefused(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, &holdfast.Options{Owner: "bob@host:1"})
	h := holding()
	c := serve(t, h.service, guarded(locks, byBody, waiting(0))...)
	ctx := background(t)
	inside, done := h.begin(t, func() error { return c.call(ctx, "account/42") })
	if lock, ok := holdfast.FromContext(inside); !ok || lock.Key() != "account/42" {
		t.Error("the handler's context has no lock")
	}

	r := refused(t, c.call(ctx, "account/42"), codes.Aborted, LockHeld)
	if r.Key != "account/42" || r.RetryAfter <= 0 || r.RetryAfter > 15*time.Second {
		t.Errorf("%+v; want the key and the rest of a lease of 15s", r)
	}
	if err := c.call(ctx, "account/42"); strings.Contains(fmt.Sprint(status.Convert(err).Proto()), "bob") {
		t.Errorf("%v tells who holds the lock", err)
	}
	stream, err := c.talk(ctx, "account/42")
	if err == nil {
		_, err = stream.Recv()
	}
	refused(t, err, codes.Aborted, LockHeld)

	other, otherDone := h.begin(t, func() error { return c.call(ctx, "account/43") })
	unguarded, unguardedDone := h.begin(t, func() error { return c.call(ctx, "") })
	if _, ok := holdfast.FromContext(unguarded); ok || other.Err() != nil {
		t.Error("a call without a key has a lock")
	}
	close(h.end)
	for _, done := range []chan error{done, otherDone, unguardedDone} {
		if err := await(t, "answer", done); err != nil {
			t.Error(err)
		}
	}
	if err := c.call(ctx, "account/42"); err != nil {
		t.Errorf("after the first had ended: %v", err)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, nil)
	h := holding()
	patient := serve(t, h.service, guarded(locks, byBody, waiting(patience))...)
	hasty := serve(t, h.service, guarded(locks, byBody, waiting(time.Millisecond))...)
	ctx := background(t)
	_, first := h.begin(t, func() error { return patient.call(ctx, "k") })
	second := make(chan error, 1)
	go func() { second <- patient.call(ctx, "k") }()
	refused(t, hasty.call(ctx, "k"), codes.Aborted, LockHeld)

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := patient.call(short, "k"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a caller with a deadline: %v", err)
	}
	select {
	case <-h.began:
		t.Fatal("two handlers at once")
	default:
	}
	close(h.end)
	for _, done := range []chan error{first, second} {
		if err := await(t, "answer", done); err != nil {
			t.Error(err)
		}
	}
}

// TestCancelledWait sees to it that the server notices that the caller has gone,
// and does not give it the lock.
func TestCancelledWait(t *testing.T) {
	t.Parallel()
	wanted := make(chan struct{}, 10)
	locks := inMemory(t, &holdfast.Options{Trace: &holdfast.Trace{
		Wanted: func(holdfast.Event) { wanted <- struct{}{} },
	}})
	over := make(chan error, 1)
	outer := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		reply, err := handler(ctx, req)
		over <- err
		return reply, err
	}
	c := serve(t, &service{}, append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(outer)},
		guarded(locks, byBody, waiting(patience))...)...)
	lock, err := locks.Lock(background(t), "k")
	if err != nil {
		t.Fatal(err)
	}
	<-wanted
	ctx, cancel := context.WithCancel(background(t))
	called := make(chan error, 1)
	go func() { called <- c.call(ctx, "k") }()
	await(t, "wait", wanted)
	cancel()
	if err := await(t, "answer", called); status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	err = await(t, "end of the wait", over)
	if status.Code(err) != codes.Canceled || !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("an interceptor outside sees %v; want the end of the call, and ErrHeld", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
	free(t, locks, "k")
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	never := &service{
		unary:  func(context.Context, *pb.SimpleRequest) error { return errors.New("the handler ran") },
		stream: func(chat) error { return errors.New("the handler ran") },
	}
	open := &Options{FailOpen: true}
	locks := inMemory(t, &holdfast.Options{Prefix: "app/"})
	c := serve(t, never, guarded(locks, Required(byBody, "name an account"), open)...)
	ctx := background(t)
	for key, want := range map[string]string{
		"":                       "name an account",
		strings.Repeat("k", 513): "513 bytes",
		strings.Repeat("k", 510): "514 bytes with its prefix",
		"\xff":                   "UTF-8",
	} {
		err := c.call(ctx, key)
		refused(t, err, codes.InvalidArgument, KeyInvalid)
		if !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%.300v; want it to say %q", err, want)
		}
	}
	stream, err := c.talk(metadata.AppendToOutgoingContext(ctx, "key-bin", "one"), "two")
	if err == nil {
		_, err = stream.Recv()
	}
	refused(t, err, codes.InvalidArgument, KeyInvalid)

	strict := func(context.Context, string, any) (string, error) {
		return "", status.Error(codes.Unauthenticated, "who are you?")
	}
	if err := serve(t, never, guarded(locks, strict, nil)...).call(ctx, "k"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the status of the KeyFunc became %v", err)
	}
	wrong := *open
	wrong.Lock = []holdfast.LockOption{holdfast.Wait(-1)}
	refused(t, serve(t, never, guarded(locks, byBody, &wrong)...).call(ctx, "k"), codes.Internal, LockInvalid)
	refused(t, serve(t, never, guarded(locks, nil, open)...).call(ctx, "k"), codes.Internal, LockInvalid)
	refused(t, serve(t, never, guarded(nil, byBody, open)...).call(ctx, "k"), codes.Internal, LockInvalid)
}

// TestGivenBack ends calls in every way.
func TestGivenBack(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, &holdfast.Options{TTL: time.Hour}) // not given back by itself
	h := holding()
	hold := h.unary
	h.unary = func(ctx context.Context, req *pb.SimpleRequest) error {
		switch string(req.GetPayload().GetBody()) {
		case "panic":
			panic("oh")
		case "error":
			return status.Error(codes.NotFound, "no account")
		}
		return hold(ctx, req)
	}
	calm := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		defer func() {
			if seen := recover(); seen != nil {
				err = status.Errorf(codes.Internal, "panic: %v", seen)
			}
		}()
		return handler(ctx, req)
	}
	c := serve(t, h.service, append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(calm)}, guarded(locks, byBody, nil)...)...)
	ctx := background(t)

	if err := c.call(ctx, "panic"); err == nil || !strings.Contains(err.Error(), "panic: oh") {
		t.Error(err)
	}
	free(t, locks, "panic")
	if err := c.call(ctx, "error"); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	free(t, locks, "error")
	for name, call := range map[string]func(ctx context.Context, key string) error{
		"unary": c.call,
		"stream": func(ctx context.Context, key string) error {
			stream, err := c.talk(ctx, key)
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		},
	} {
		cancelled, cancel := context.WithCancel(ctx)
		_, done := h.begin(t, func() error { return call(cancelled, name) })
		cancel()
		if err := await(t, "answer", done); status.Code(err) != codes.Canceled {
			t.Errorf("%s: %v", name, err)
		}
		free(t, locks, name)
	}
}

// A handler that works for longer than the TTL keeps its lock.
func TestLongHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 2 * time.Second
		intercept := UnaryServerInterceptor(inMemory(t, &holdfast.Options{TTL: ttl}), byBody, nil)
		call := func(handler grpc.UnaryHandler) error {
			request := &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("k")}}
			_, err := intercept(t.Context(), request, &grpc.UnaryServerInfo{FullMethod: pb.TestService_UnaryCall_FullMethodName}, handler)
			return err
		}
		err := call(func(ctx context.Context, _ any) (any, error) {
			for range 5 {
				time.Sleep(ttl)
				refused(t, call(func(context.Context, any) (any, error) { return nil, nil }), codes.Aborted, LockHeld)
			}
			return nil, ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// breakLock takes the lock away from whoever holds it.
func breakLock(t *testing.T, locks *holdfast.Locker, key string) {
	t.Helper()
	holders, err := locks.Holders(background(t), key)
	if err == nil && len(holders) == 1 {
		err = locks.Break(background(t), key, holders[0].ID)
	}
	if err != nil || len(holders) != 1 {
		t.Fatalf("break the lock of %v: %v", holders, err)
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, nil)
	h := holding()
	c := serve(t, h.service, guarded(locks, byBody, nil)...)
	ctx := background(t)
	inside, done := h.begin(t, func() error { return c.call(ctx, "k") })
	breakLock(t, locks, "k")
	refused(t, await(t, "answer", done), codes.Aborted, LockLost)
	if cause := context.Cause(inside); !errors.Is(cause, holdfast.ErrLost) {
		t.Errorf("the handler's context ended by %v", cause)
	}

	// A handler that does not look at its context must not answer as if all were well.
	h = holding()
	h.unary = func(ctx context.Context, _ *pb.SimpleRequest) error {
		h.began <- ctx
		<-h.end
		return nil
	}
	c = serve(t, h.service, guarded(locks, byBody, nil)...)
	inside, done = h.begin(t, func() error { return c.call(ctx, "k") })
	breakLock(t, locks, "k")
	await(t, "loss", inside.Done())
	close(h.end)
	refused(t, await(t, "answer", done), codes.Aborted, LockLost)
}

// TestClosed closes the Locker below a handler.
func TestClosed(t *testing.T) {
	t.Parallel()
	locks := inMemory(t, nil)
	h := holding()
	c := serve(t, h.service, guarded(locks, byBody, &Options{FailOpen: true})...)
	ctx := background(t)
	_, done := h.begin(t, func() error { return c.call(ctx, "k") })
	if err := locks.Close(); err != nil {
		t.Error(err)
	}
	refused(t, await(t, "answer", done), codes.Aborted, LockLost)
	refused(t, c.call(ctx, "k"), codes.Unavailable, StoreUnreachable)
}

// An interceptor that nobody gave a Logger still says why it refuses every call.
func TestDefaultLogger(t *testing.T) {
	var text bytes.Buffer
	logger, writer, flags := slog.Default(), log.Writer(), log.Flags()
	defer func() {
		slog.SetDefault(logger)
		log.SetOutput(writer) // which slog has set
		log.SetFlags(flags)
	}()
	intercept := UnaryServerInterceptor(nil, nil, nil)
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	_, err := intercept(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/shop/Order"}, nil)
	if status.Code(err) != codes.Internal || !strings.Contains(text.String(), "needs a Locker and a KeyFunc") || !strings.Contains(text.String(), "method=/shop/Order") {
		t.Errorf("answered with %v; the log has %q", err, text.String())
	}
}
