package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
)

const (
	// firstTry bounds the first attempt at a call; those after it have longer.
	// The client sends each attempt to the next member, so that one that hangs
	// costs no more than this.
	firstTry = 500 * time.Millisecond

	// callLimit bounds calls whose context has no end.
	callLimit = 10 * time.Second

	// pause is between attempts that fail at once.
	pause = 20 * time.Millisecond
)

// A txn is what etcd does in one step.
type txn struct {
	when      []clientv3.Cmp
	then, els []clientv3.Op
}

// An answer is what came of a txn.
type answer struct {
	*clientv3.TxnResponse

	// again says that the answer is that of a later attempt: an earlier one may
	// have been carried out, or may still be.
	again bool
}

// kvs returns what the operation with this index has read.
func (a answer) kvs(i int) *etcdserverpb.RangeResponse { return a.Responses[i].GetResponseRange() }

// do carries out a txn. It must be one that may be carried out twice. An error
// means that it may have been carried out, unless it is final.
func (s *Store) do(ctx context.Context, t txn) (a answer, err error) {
	err = s.attempts(ctx, func(ctx context.Context, n int) error {
		a.again = n > 0
		a.TxnResponse, err = s.client.Txn(ctx).If(t.when...).Then(t.then...).Else(t.els...).Commit()
		if err != nil {
			return err
		}
		return s.cluster(a.Header)
	})
	return a, err
}

// attempts calls f until it succeeds, or fails for good, or ctx ends, or the Store.
func (s *Store) attempts(ctx context.Context, f func(ctx context.Context, n int) error) error {
	ctx, cancel := limited(ctx)
	defer cancel()
	var last error
	for n := 0; ; n++ {
		err := s.attempt(ctx, n, f)
		if err == nil || final(err) {
			return s.explain(err)
		}
		if last == nil || !overdue(err) {
			last = err // What came in time says more.
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ended(ctx, last)
		case <-s.ctx.Done():
			timer.Stop()
			return errClosed
		}
	}
}

func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callLimit)
}

func (s *Store) attempt(ctx context.Context, n int, f func(context.Context, int) error) error {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	ctx, cancel := context.WithTimeout(ctx, min(max(left/2, min(left, pause)), firstTry<<min(n, 6)))
	defer cancel()
	return f(ctx, n)
}

// ended is the error when ctx has ended and the last attempt had failed with
// another, which says more.
func ended(ctx context.Context, last error) error {
	if overdue(last) {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", ctx.Err(), last)
}

func overdue(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// final reports whether an error is etcd's refusal: nothing was carried out, and
// another attempt would end the same.
func final(err error) bool {
	if errors.Is(err, errCluster) {
		return true
	}
	var refused rpctypes.EtcdError
	if !errors.As(err, &refused) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrTooManyRequests) {
		return false
	}
	switch refused.Code() {
	case codes.Unavailable, codes.Unauthenticated, codes.Canceled, codes.DeadlineExceeded:
		return false // no leader, an old token of a session, and the like
	}
	return true
}

var errCluster = errors.New("another etcd cluster answers than before, which knows none of the locks: open the store anew")

// cluster refuses the answers of another cluster than the first: its revisions,
// and with them the tokens, have nothing to do with those of before.
func (s *Store) cluster(h *etcdserverpb.ResponseHeader) error {
	if first := s.clusterID.Load(); first != h.ClusterId && !s.clusterID.CompareAndSwap(0, h.ClusterId) {
		return errCluster
	}
	return nil
}

// explain adds to an error what etcd leaves out.
func (s *Store) explain(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return fmt.Errorf("%w: the user needs a role with the right to read and write keys that begin with %q (etcdctl role grant-permission ROLE --prefix readwrite %s)",
			err, s.names.prefix, s.names.prefix)
	case errors.Is(err, rpctypes.ErrUserEmpty):
		return fmt.Errorf("%w: the server wants a user and a password", err)
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: nothing can be locked before etcd is compacted and defragmented and its alarm is disarmed", err)
	}
	return err
}
