package etcdlock_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
)

// A spy sees the transactions of a client.
type spy struct {
	mu     sync.Mutex
	most   int  // claims in an answer
	handed int  // looks at the turn that found a hand-over
	looked int  // looks at the turn that went through the folder
	deafen bool // the answer to the next transaction that creates a claim is lost
}

func (s *spy) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, conn, opts...)
	txn, _ := req.(*etcdserverpb.TxnRequest)
	r, _ := reply.(*etcdserverpb.TxnResponse)
	if err != nil || txn == nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most = max(s.most, claims(r.Responses))
	for _, c := range txn.Compare {
		switch {
		case !strings.Contains(string(c.Key), "handed/"):
		case r.Succeeded:
			s.handed++
		default:
			s.looked++
		}
	}
	if s.deafen && writes(txn) && r.Succeeded {
		s.deafen = false
		return status.Error(codes.Unavailable, "the answer is lost")
	}
	return nil
}

// claims returns how many claims are in an answer.
func claims(rs []*etcdserverpb.ResponseOp) (n int) {
	for _, r := range rs {
		n += len(r.GetResponseRange().GetKvs()) + claims(r.GetResponseTxn().GetResponses())
	}
	return n
}

// woken waits until a claim is pushed a grant.
func woken(t *scene, wakes <-chan driver.Grant) {
	t.Helper()
	for timeout := time.After(aWhile); ; {
		select {
		case g := <-wakes:
			if g.OK {
				return
			}
		case <-timeout:
			t.missing("a pushed grant")
		}
	}
}

// TestHandOver lets every claim ahead of a claim in a long queue hold the key. The claim is
// granted by the hand-over of the claim just ahead, also if the answer was lost when it joined
// the queue. It never reads the whole queue.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for name, deafen := range map[string]bool{"plain": false, "an answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, func(t *scene) {
				by := &spy{deafen: deafen}
				b, prefix := intercepted(t, by.carry)
				a := openStore(t, shared.URL()+"?prefix="+prefix)
				claim := waiting("key", "last")
				all, wakes := last(t, a, b, claim)
				if n := under(t, admin(t, shared.Addr()), prefix+"claims/").Count; n != ahead+1 {
					t.Errorf("%d claims, want %d", n, ahead+1)
				}
				defer listen(t, b, claim, wakes)()
				for _, c := range all {
					granted(t, a, driver.Ask{Claim: c, Wait: true, Span: 1})
					release(t, a, c)
				}
				woken(t, wakes)
				by.mu.Lock()
				defer by.mu.Unlock()
				if by.handed != 1 || by.looked > 0 {
					t.Errorf("%d looks found a hand-over, and %d went through the folder", by.handed, by.looked)
				}
				if by.most >= ahead {
					t.Errorf("an answer has %d claims", by.most)
				}
			})
		})
	}
}

// TestNoHandOver releases the holder and the claim just ahead of a claim in a long queue in one
// call, and then the claims between, the claim that would hold first at the end. The claim is
// granted when all have left.
func TestNoHandOver(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		by := new(spy)
		b, prefix := intercepted(t, by.carry)
		a := openStore(t, shared.URL()+"?prefix="+prefix)
		claim := waiting("key"+rand.Text(), "last")
		all, wakes := last(t, a, b, claim)
		defer listen(t, b, claim, wakes)()
		for _, err := range a.Release(t.Context(), []driver.Release{{Claim: all[0]}, {Claim: all[ahead-1]}}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := ahead - 2; i > 0; i-- {
			refused(t, b, claim)
			release(t, a, all[i])
		}
		if !asked(t, b, claim).OK {
			woken(t, wakes)
		}
		by.mu.Lock()
		defer by.mu.Unlock()
		if by.handed > 0 {
			t.Errorf("%d looks found a hand-over", by.handed)
		}
	})
}
