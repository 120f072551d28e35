package grpclock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast"
)

// Options are the settings of the interceptors that lock. The zero value is ready to use.
type Options struct {
	// Lock has the options for acquiring the lock. A call that finds the lock held is
	// refused at once unless Lock includes a [holdfast.Wait]. [holdfast.MaxHold] ends the
	// context of a handler that hangs, and frees the key soon after. [holdfast.Shared] and
	// [holdfast.Slots] work as well.
	Lock []holdfast.LockOption

	// FailOpen calls the handler without a lock if the store cannot be reached. Use
	// FailOpen for work that may rather run twice than not at all. The handler's context
	// then carries no lock (see [holdfast.FromContext]).
	FailOpen bool

	// Logger receives calls that are refused through no fault of the client, and calls that
	// FailOpen lets through. Default: [slog.Default].
	Logger *slog.Logger
}

// UnaryServerInterceptor returns an interceptor that runs one call per key at a time. nil
// means the default options. An invalid argument is logged, and answered to every call with
// Internal. The package comment lists the answers to callers.
func UnaryServerInterceptor(locks *holdfast.Locker, key KeyFunc, opts *Options) grpc.UnaryServerInterceptor {
	g := newGuard(locks, key, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		err = g.run(ctx, info.FullMethod, req, func(ctx context.Context) (err error) {
			reply, err = handler(ctx, req)
			return err
		})
		return reply, err
	}
}

// StreamServerInterceptor is [UnaryServerInterceptor] for streams: a stream holds its lock
// from its beginning to its end. The KeyFunc of a stream gets a nil request.
func StreamServerInterceptor(locks *holdfast.Locker, key KeyFunc, opts *Options) grpc.StreamServerInterceptor {
	g := newGuard(locks, key, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return g.run(ss.Context(), info.FullMethod, nil, func(ctx context.Context) error {
			return handler(srv, &stream{ss, ctx})
		})
	}
}

// A guard acquires the locks of calls.
type guard struct {
	locks *holdfast.Locker
	key   KeyFunc
	opts  Options
}

func newGuard(locks *holdfast.Locker, key KeyFunc, opts *Options) *guard {
	g := &guard{locks: locks, key: key}
	if opts != nil {
		g.opts = *opts
	}
	g.opts.Lock = append([]holdfast.LockOption{holdfast.Wait(0)}, g.opts.Lock...)
	return g
}

func (g *guard) run(ctx context.Context, method string, req any, handle func(context.Context) error) error {
	if g.locks == nil || g.key == nil {
		return g.refuse(ctx, method, "", errArguments)
	}
	key, err := g.key(ctx, method, req)
	if err != nil {
		return badKey(err)
	}
	if key == "" {
		return handle(ctx)
	}
	lock, err := g.locks.Lock(ctx, key, g.opts.Lock...)
	switch {
	case err == nil:
		return hold(ctx, lock, handle)
	case ctx.Err() != nil:
		return cut(ctx.Err(), err)
	case g.opts.FailOpen && unreachable(err):
		g.log(ctx, "call runs without its lock", method, err)
		return handle(ctx)
	}
	return g.refuse(ctx, method, key, err)
}

// refuse answers a call that could not acquire its lock, and logs errors of the server.
func (g *guard) refuse(ctx context.Context, method, key string, err error) error {
	answer := notLocked(key, err)
	if code := status.Code(answer); code == codes.Internal || code == codes.Unavailable {
		g.log(ctx, "call is refused", method, err)
	}
	return answer
}

func (g *guard) log(ctx context.Context, text, method string, err error) {
	cmp.Or(g.opts.Logger, slog.Default()).ErrorContext(ctx, text, "method", method, "error", err)
}

var errArguments = fmt.Errorf("%w: grpclock needs a Locker and a KeyFunc, or Fences", holdfast.ErrInvalid)

// hold calls the handler and releases the lock. If only the store's confirmation of the
// release is missing, the caller gets no error.
func hold(ctx context.Context, lock *holdfast.Lock, handle func(context.Context) error) (err error) {
	defer func() {
		if end := lock.Unlock(); errors.Is(end, holdfast.ErrLost) || errors.Is(end, holdfast.ErrClosed) {
			err = lost(lock.Key(), errors.Join(end, err))
		}
	}()
	return handle(lock.Context(ctx))
}

// lost returns the answer to a call whose handler may not have been alone.
func lost(key string, cause error) error {
	return refuse(Refusal{Reason: LockLost, Key: key}, cause, "the lock was lost while the call ran")
}

// A stream carries the lock in its context. Once the lock is lost, the stream passes no
// more messages, because not every handler watches its context.
type stream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.ended()
}

func (s *stream) SendMsg(m any) error {
	if err := s.ended(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

func (s *stream) ended() error {
	lock, ok := holdfast.FromContext(s.ctx)
	if !ok || lock.Err() == nil {
		return nil
	}
	return lost(lock.Key(), lock.Err())
}
