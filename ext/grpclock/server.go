package grpclock

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
)

// Options are the settings of the interceptors that lock. The zero value is ready
// to use.
type Options struct {
	// Wait is how long a call waits for its turn, besides its own deadline.
	// Default 0: it is refused at once.
	Wait time.Duration

	// Lock has further options of each lock, such as TTL, MaxHold, Slots or Note;
	// not Wait or Retry.
	Lock []holdfast.LockOption

	// FailOpen decides, for a call that got no lock because the store cannot be
	// asked, whether it goes on without: its context then carries no lock. Log
	// it there. Default: no call does. A call that is refused for another
	// reason, such as a key that is too long, is not asked about.
	FailOpen func(ctx context.Context, method string, err error) bool

	// ShowHolder tells callers who are refused who holds the lock, by its owner,
	// its note and since when. The owner names a user, a host and a process: leave
	// it off where strangers call.
	ShowHolder bool
}

// UnaryServerInterceptor returns an interceptor that runs one call per key at a
// time. nil means the default options. A wrong one is told by every call, with
// Internal. The package comment says what callers are told.
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

// StreamServerInterceptor is [UnaryServerInterceptor] for streams: each has its
// lock from its beginning to its end. The request that its KeyFunc gets is nil.
func StreamServerInterceptor(locks *holdfast.Locker, key KeyFunc, opts *Options) grpc.StreamServerInterceptor {
	g := newGuard(locks, key, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return g.run(ss.Context(), info.FullMethod, nil, func(ctx context.Context) error {
			return handler(srv, &stream{ss, ctx})
		})
	}
}

// A guard takes the locks of calls.
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
	g.opts.Lock = append(slices.Clone(g.opts.Lock), holdfast.Wait(g.opts.Wait))
	return g
}

func (g *guard) run(ctx context.Context, method string, req any, handle func(context.Context) error) error {
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
	case g.opts.FailOpen != nil && unreachable(err) && g.opts.FailOpen(ctx, method, err):
		return handle(ctx)
	}
	return notLocked(key, g.opts.ShowHolder, err)
}

// hold calls the handler and gives the lock back. That the store has not confirmed
// that is no business of the caller's.
func hold(ctx context.Context, lock *holdfast.Lock, handle func(context.Context) error) (err error) {
	defer func() {
		if end := lock.Unlock(); errors.Is(end, holdfast.ErrLost) || errors.Is(end, holdfast.ErrClosed) {
			err = lost(lock.Key(), errors.Join(end, err))
		}
	}()
	return handle(lock.Context(ctx))
}

// lost is the answer to a call whose handler may not have been alone.
func lost(key string, cause error) error {
	return refuse(Refusal{Reason: LockLost, Key: key}, cause, "the lock was lost while the call ran")
}

// A stream is one whose context carries the lock. It passes no message once that
// is lost, because not every handler looks at its context.
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
