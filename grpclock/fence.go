package grpclock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/caller"
)

// The metadata entries in which clients send the key and the token of a lock. Values of
// entries in -bin may be any bytes.
const (
	keyEntry   = "holdfast-key-bin"
	tokenEntry = "holdfast-fence"
)

// UnaryClientFence is a client interceptor that sends the key and the fencing token of the
// lock in the context ([holdfast.Lock.Context]), the innermost if there are several. Calls
// whose context carries no lock are sent unchanged. If the lock is lost, the call is not
// sent and the error matches [holdfast.ErrLost]. If the lock's store has no tokens, the
// call is not sent and the error matches [holdfast.ErrNotFenced].
func UnaryClientFence(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, err := withToken(ctx)
	if err != nil {
		return err
	}
	return invoker(ctx, method, req, reply, cc, opts...)
}

// StreamClientFence is [UnaryClientFence] for streams. A stream sends the token once, at
// its beginning.
func StreamClientFence(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	ctx, err := withToken(ctx)
	if err != nil {
		return nil, err
	}
	return streamer(ctx, desc, cc, method, opts...)
}

// withToken puts the lock in the context into the metadata of the call. Entries passed on
// from an incoming call are replaced.
func withToken(ctx context.Context) (context.Context, error) {
	lock, ok := holdfast.FromContext(ctx)
	if !ok {
		return ctx, nil
	}
	token := lock.Fence()
	if err := lock.Err(); err != nil {
		return nil, refuse(Refusal{Reason: LockLost, Key: lock.Key()}, err, "the lock was lost before the call")
	}
	if token == 0 {
		return nil, refuse(Refusal{Reason: LockInvalid, Key: lock.Key()}, holdfast.ErrNotFenced, "the store of the lock has no fencing tokens")
	}
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = metadata.MD{}
	}
	md.Set(keyEntry, lock.Key())
	md.Set(tokenEntry, strconv.FormatUint(token, 10))
	return metadata.NewOutgoingContext(ctx, md), nil
}

// Token returns the key and the fencing token that a call carries; "" and 0 if the call
// carries neither. An error says why they are invalid.
func Token(ctx context.Context) (key string, token uint64, err error) {
	key, err = entry(ctx, keyEntry)
	if err != nil {
		return "", 0, err
	}
	text, err := entry(ctx, tokenEntry)
	if err != nil || key == "" && text == "" {
		return "", 0, err
	}
	token, err = strconv.ParseUint(text, 10, 64)
	if err != nil || token == 0 || token > math.MaxInt64 {
		return "", 0, fmt.Errorf("%s is %.20q; it must be a number from 1 to %d", tokenEntry, text, math.MaxInt64)
	}
	if err := caller.CheckKey(key); err != nil {
		return "", 0, fmt.Errorf("%s: %w", keyEntry, err)
	}
	return key, token, nil
}

// Fences remember the highest token of each key and reject smaller tokens with an error
// that matches [fence.ErrOutdated]. Otherwise Check calls write, which is the handler, and
// returns the error of write. [fence.Memory] implements Fences.
type Fences interface {
	Check(ctx context.Context, key string, token uint64, write func() error) error
}

var _ Fences = (*fence.Memory)(nil)

// UnaryServerFence returns an interceptor that lets a call pass only with the fencing token
// of its key, and only if no larger token has been seen. Calls with the key "" need no
// token. A nil key trusts the client's choice of the key, which protects the data of that
// lock and nothing else.
func UnaryServerFence(fences Fences, key KeyFunc) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		err = check(ctx, fences, key, info.FullMethod, req, func() (err error) {
			reply, err = handler(ctx, req)
			return err
		})
		return reply, err
	}
}

// StreamServerFence is [UnaryServerFence] for streams. A stream is checked once, at its
// beginning. [fence.Memory] keeps streams of later holders waiting until the stream ends.
func StreamServerFence(fences Fences, key KeyFunc) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return check(ss.Context(), fences, key, info.FullMethod, nil, func() error { return handler(srv, ss) })
	}
}

func check(ctx context.Context, fences Fences, key KeyFunc, method string, req any, handle func() error) error {
	if fences == nil {
		return refuse(Refusal{Reason: LockInvalid}, errArguments, "the server has no fences")
	}
	want := ""
	if key != nil {
		var err error
		if want, err = key(ctx, method, req); err != nil {
			return badKey(err)
		}
		if want == "" {
			return handle()
		}
	}
	sent, token, err := Token(ctx)
	switch {
	case err != nil:
		return refuse(Refusal{Reason: TokenInvalid}, err, err.Error())
	case token == 0:
		return refuse(Refusal{Reason: TokenMissing}, nil, "the call needs the fencing token of its lock")
	case key != nil && sent != want:
		return refuse(Refusal{Reason: TokenInvalid, Key: sent}, nil, "the fencing token is for another key")
	}
	passed := false
	err = fences.Check(ctx, sent, token, func() error {
		passed = true
		return handle()
	})
	if err == nil || passed {
		return err
	}
	return outdated(ctx, sent, err)
}

// outdated returns the answer to a call that the fences have rejected.
func outdated(ctx context.Context, key string, err error) error {
	switch {
	case errors.Is(err, fence.ErrOutdated):
		return refuse(Refusal{Reason: TokenOutdated, Key: key}, err, "a later holder of the lock has called before")
	case ctx.Err() != nil:
		return cut(ctx.Err(), err)
	}
	return refuse(Refusal{Reason: StoreUnreachable, Key: key}, err, "the store of the fences cannot be asked")
}
