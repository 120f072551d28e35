package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// A gate lets no deletion pass until it is opened, and knows how many claims the
// largest was to delete.
type gate struct {
	mu   sync.Mutex
	open bool
	most int
}

func (g *gate) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	txn, _ := req.(*etcdserverpb.TxnRequest)
	if g.passes(deletions(txn)) {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

func (g *gate) passes(deletions int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.most = max(g.most, deletions)
	return g.open || deletions == 0
}

// deletions counts what a transaction may delete.
func deletions(r *etcdserverpb.TxnRequest) (n int) {
	for _, op := range r.GetSuccess() {
		if op.GetRequestDeleteRange() != nil {
			n++
		}
		n += deletions(op.GetRequestTxn())
	}
	return n
}

// brief is the TTL of claims that run out. Their lease in etcd is a little longer, and is
// to outlast a pause of this machine.
const brief = 8 * time.Second

// TestManyRunOut has an etcd that is slow to delete, and many claims that nobody
// renews: they are removed in one step, not one after the other.
func TestManyRunOut(t *testing.T) {
	t.Parallel()
	const many = 20
	g := new(gate)
	s, prefix := intercepted(t, g.carry)
	for n := range many {
		a := exclusive(fmt.Sprint("key", n), fmt.Sprint("claim", n))
		a.TTL = brief
		asked(t, s, a)
	}
	servers.Await(t, "removal of all at once", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.most < many {
			return fmt.Errorf("at most %d", g.most)
		}
		g.open = true
		return nil
	})
	c := admin(t, shared.Addr())
	servers.Await(t, "end of all claims", func() error {
		if n := under(t, c, prefix+"claims/").Count; n > 0 {
			return errors.New("some are left")
		}
		return nil
	})
}

// TestManyAreReleased releases claims of which nobody knows whether they were made:
// that takes hardly more requests than for one of them.
func TestManyAreReleased(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	s, prefix := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.TxnRequest); ok {
			sent.Add(1)
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	var some []driver.Release
	for n := range 40 {
		c := exclusive(fmt.Sprint("key", n%4), fmt.Sprint("claim", n)).Claim
		some = append(some, driver.Release{Claim: c, Late: true})
	}
	other := must.Get(etcdlock.New(admin(t, shared.Addr()), &etcdlock.Options{Prefix: prefix}))
	defer other.Close()
	made := exclusive("key2", "claim2")
	asked(t, other, made)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	for i, err := range s.Release(ctx, append(some, some[0])) {
		if want := driver.ErrLost; i != 2 && !errors.Is(err, want) || i == 2 && err != nil {
			t.Errorf("claim %d of %d: %v", i, len(some), err)
		}
	}
	if n := sent.Load(); int(n) >= len(some) { // four, and what has to be sent again
		t.Errorf("%d requests for %d claims", n, len(some))
	}
	var again sync.WaitGroup
	for _, r := range some {
		again.Go(func() {
			g, err := other.Acquire(t.Context(), driver.Ask{Claim: r.Claim, Span: 1})
			switch {
			case !g.OK:
			case time.Since(began) < 10*time.Second:
				t.Errorf("%s came back: %v, %v", r.ID, g, err)
			default: // Etcd need not know of its end any longer.
				unproved.Logf(t, "%s came back after %v", r.ID, time.Since(began))
			}
		})
	}
	again.Wait()
}

// TestCleansByName lets a claim run out that waits in a queue. The cleaner looks for its name
// alone, and not through the queue, in which there may be a thousand claims, or a key of
// somebody else.
func TestCleansByName(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64 // of a whole queue
	s, prefix := intercepted(t, func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		txn, _ := req.(*etcdserverpb.TxnRequest)
		for _, op := range slices.Concat(txn.GetSuccess(), txn.GetFailure()) {
			if len(op.GetRequestRange().GetRangeEnd()) > 0 {
				looks.Add(1)
			}
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	c := admin(t, shared.Addr())
	other := must.Get(etcdlock.New(c, &etcdlock.Options{Prefix: prefix}))
	defer other.Close()
	holder := exclusive("key", "holder")
	holder.TTL = time.Minute
	grantedAtLast(t, other, holder)
	waiter := exclusive("key", "waiter")
	waiter.TTL, waiter.Wait = brief, true
	refused(t, s, waiter)
	if _, err := c.Put(t.Context(), prefix+"claims/key/0", "no claim"); err != nil {
		t.Fatal(err)
	}
	before := looks.Load()
	servers.Await(t, "end of the waiting claim", func() error {
		if n := under(t, c, prefix+"claims/key/").Count; n > 2 {
			return fmt.Errorf("%d keys, want the holder and the other key", n)
		}
		return nil
	})
	if n := looks.Load() - before; n > 0 {
		t.Errorf("%d looks at the queue, want none", n)
	}
}
