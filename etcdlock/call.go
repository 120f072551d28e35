package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
)

const (
	// firstTry bounds the first attempt at a call, if the client knows several members; later
	// attempts have longer. A hanging member costs no more than firstTry, and no more than half
	// of the call, if the client sends the second attempt to a different member. Concurrent
	// calls take turns at the members, so a second attempt may meet the hanging member again.
	// A later attempt may take the rest of the call: a slow etcd carries out every attempt, so
	// more attempts would make etcd slower.
	firstTry = 500 * time.Millisecond

	// soleTry bounds the first attempt if the client knows a single member. With two seconds, 1,000
	// clients beside a load send etcd more than it can answer.
	soleTry = 5 * time.Second

	// maxDoublings bounds how often a time is doubled, after failures in a row.
	maxDoublings = 4

	// callLimit bounds calls whose context has no deadline, and an Acquire that goes on.
	callLimit = 10 * time.Second

	// reachLimit is how long a Store that never had an answer looks for a reachable
	// member.
	reachLimit = time.Second

	// pause is the time between attempts that fail at once.
	pause = 20 * time.Millisecond
)

// A txn is a transaction of etcd, carried out in a single step. A txn has an operation:
// without one, etcd takes the transaction for a read of what one member knows, which may be
// out of date.
type txn struct {
	key       string // of the claims; "" if the transaction goes alone
	when      []clientv3.Cmp
	then, els []clientv3.Op
}

// An answer is the answer to a txn.
type answer struct {
	*clientv3.TxnResponse

	// again means a retry got the answer: an earlier attempt may have been carried out,
	// or may still be.
	again bool
}

// kvs returns the read result of the operation with this index.
func (a answer) kvs(i int) *etcdserverpb.RangeResponse { return a.Responses[i].GetResponseRange() }

// do carries out a txn. The txn must be idempotent. After an error the txn may have
// been carried out, unless the error is final.
func (s *Store) do(ctx context.Context, t txn) (a answer, err error) {
	if len(t.then)+len(t.els) == 0 {
		panic("etcdlock: a transaction without an operation")
	}
	err = s.attempts(ctx, func(ctx context.Context, n int) error {
		a.again = n > 0
		known := s.past.known()
		a.TxnResponse, err = s.combiner.commit(ctx, t)
		if err != nil {
			return err
		}
		if a.Succeeded && slices.ContainsFunc(t.then, clientv3.Op.IsPut) {
			known++ // A write makes a new revision.
		}
		return s.advance(a.Header, known)
	})
	return a, err
}

// attempts calls f until f succeeds, f fails for good, ctx ends or the Store closes.
func (s *Store) attempts(ctx context.Context, f func(ctx context.Context, n int) error) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	var last error
	began := s.now()
	for n := 0; ; n++ {
		err := s.attempt(ctx, n, f)
		switch {
		case err == nil || final(err):
			s.past.note(nil, s.now())
		case !overdue(err):
			s.past.note(err, s.now())
		}
		if err == nil || final(err) || unreachable(err) && !s.past.met() && s.now().Sub(began) > reachLimit {
			return s.explain(err)
		}
		if last == nil || !overdue(err) {
			last = err // An error before the deadline says more.
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ended(ctx, last)
		case <-s.ctx.Done():
			timer.Stop()
			return context.Cause(s.ctx)
		}
	}
}

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callLimit)
}

// firstDeadline is the key of contexts for the deadline of the first caller of an Acquire.
type firstDeadline struct{}

// deadline returns the deadline of the first caller of an Acquire, and of other calls that of ctx.
func deadline(ctx context.Context) time.Time {
	if first, ok := ctx.Value(firstDeadline{}).(time.Time); ok {
		return first
	}
	at, _ := ctx.Deadline()
	return at
}

func (s *Store) attempt(ctx context.Context, n int, f func(context.Context, int) error) error {
	limit, sole := firstTry, s.sole()
	switch {
	case sole:
		limit = soleTry
	case n == 0:
		if half := time.Until(deadline(ctx)) / 2; half > pause { // otherwise the first caller has gone
			limit = min(limit, half)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit<<min(n, maxDoublings))
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	if sole { // Without a connection nothing was sent, and the error tells why.
		defer time.AfterFunc(firstTry<<min(n, maxDoublings), func() {
			if s.client.ActiveConnection().GetState() != connectivity.Ready {
				cancel()
			}
		}).Stop()
	}
	return f(ctx, n)
}

// sole reports whether the client knows a single member.
func (s *Store) sole() bool { return len(s.client.Endpoints()) == 1 }

// ended returns the error after ctx has ended. The error of the last attempt is added
// if it says more.
func ended(ctx context.Context, last error) error {
	if overdue(last) {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ctx.Err(), last)
}

// unreachable reports whether the client has no connection to a member and knows the
// reason.
func unreachable(err error) bool {
	return err != nil && strings.Contains(err.Error(), "connection error: ") // gRPC has no code for it.
}

func overdue(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// final reports whether an error is a refusal by etcd, or of a queue that cannot be read:
// nothing was carried out, and a retry would fail the same way.
func final(err error) bool {
	if errors.Is(err, errReplaced) || errors.Is(err, driver.ErrUnwritten) || foreign(err) {
		return true
	}
	var refused rpctypes.EtcdError
	if !errors.As(err, &refused) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrTooManyRequests) {
		return false
	}
	switch refused.Code() {
	case codes.Unavailable, codes.Unauthenticated, codes.Canceled, codes.DeadlineExceeded:
		return false // no leader, an expired login token, and the like
	}
	return true
}

// foreign reports whether a server has refused a request for a reason that etcd does not have.
// Unimplemented does not count: a proxy that has no route to etcd for a moment answers so, too.
func foreign(err error) bool {
	var refused rpctypes.EtcdError
	return status.Code(err) == codes.InvalidArgument && !errors.As(err, &refused)
}

// explain adds advice to an error of etcd.
func (s *Store) explain(err error) error {
	switch {
	case foreign(err):
		return fmt.Errorf("%w: the server refuses a request that etcd accepts; the server only looks like etcd, as kine does, so use etcd itself: %w", driver.ErrInvalid, err)
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: the user needs a role with the right to read and write keys that begin with %q (etcdctl role grant-permission ROLE --prefix readwrite %s)",
			err, s.names.prefix, s.names.prefix)
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w: the server wants a user and a password", err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: nothing can be locked before etcd is compacted and defragmented and its alarm is disarmed", err)
	}
	return misdialled(err)
}

// misdialled adds to a connection error what may be wrong with the URL.
func misdialled(err error) error {
	if !unreachable(err) {
		return err
	}
	switch text := err.Error(); {
	case strings.Contains(text, "handshake failed: EOF"), strings.Contains(text, "handshake failed: read "): // reset
		return fmt.Errorf("%w: if the server speaks no TLS, the scheme is etcd://", err)
	case strings.Contains(text, "handshake failed: context deadline exceeded"):
		return fmt.Errorf("%w: the server does not answer, or speaks no TLS: then the scheme is etcd://", err)
	case strings.Contains(text, "server preface"):
		return fmt.Errorf("%w: the server does not answer, is none of etcd, or expects TLS: then the scheme is etcds://", err)
	}
	return err
}
