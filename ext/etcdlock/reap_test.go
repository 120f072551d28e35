package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// A gate lets no deletion pass until it is opened, and counts those that wait.
type gate struct {
	mu           sync.Mutex
	open         bool
	parked, most int
}

func (g *gate) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	txn, _ := req.(*etcdserverpb.TxnRequest)
	if txn == nil || !deletes(txn) || !g.park(1) {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	<-ctx.Done()
	g.park(-1)
	return status.FromContextError(ctx.Err()).Err()
}

// park counts one more that waits, or one less; it reports false if the gate is
// open.
func (g *gate) park(n int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open && n > 0 {
		return false
	}
	g.parked += n
	g.most = max(g.most, g.parked)
	return true
}

// deletes are transactions that delete something.
func deletes(r *etcdserverpb.TxnRequest) bool {
	for _, op := range r.Success {
		if op.GetRequestDeleteRange() != nil {
			return true
		}
	}
	return false
}

// TestManyRunOut has an etcd that is slow to delete, and many claims that nobody
// renews: they are removed at once, not one after the other.
func TestManyRunOut(t *testing.T) {
	t.Parallel()
	const many = 20
	g := new(gate)
	s, prefix := intercepted(t, g.carry)
	for n := range many {
		c := exclusive(fmt.Sprint("key", n), fmt.Sprint("claim", n))
		c.TTL = 3 * time.Second
		asked(t, s, c)
	}
	eventually(t, "removal of all at once", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.most < many {
			return fmt.Errorf("at most %d", g.most)
		}
		g.open = true
		return nil
	})
	c := admin(t, shared.Addr())
	eventually(t, "end of all claims", func() error {
		if n := under(t, c, prefix+"claims/").Count; n > 0 {
			return errors.New("some are left")
		}
		return nil
	})
}
