package etcdlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/etcdlock"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A delayer carries the requests of a client, and holds some transactions back. It
// delivers those that write a claim when it is told to, however late.
type delayer struct {
	mu     sync.Mutex
	holds  func(*etcdserverpb.TxnRequest) bool
	broken chan struct{} // closed when the connection of what is held back breaks
	late   []func() (*etcdserverpb.TxnResponse, error)
	caught int    // transactions held back since the last call of unheard
	giveUp func() // ends the call of unheard
}

func (d *delayer) carry(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	txn, _ := req.(*etcdserverpb.TxnRequest)
	d.mu.Lock()
	held := txn != nil && d.holds != nil && d.holds(txn)
	if held {
		if d.caught++; d.giveUp != nil {
			d.giveUp()
		}
	}
	if held && writes(txn) {
		d.late = append(d.late, func() (*etcdserverpb.TxnResponse, error) {
			r := new(etcdserverpb.TxnResponse)
			return r, conn.Invoke(context.Background(), method, txn, r)
		})
	}
	broken := d.broken
	d.mu.Unlock()
	if !held {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	select {
	case <-broken:
		return status.Error(codes.Unavailable, "the connection is broken")
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (d *delayer) hold(which func(*etcdserverpb.TxnRequest) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		close(d.broken)
		d.broken = nil
	}
	if d.holds = which; which != nil {
		d.broken = make(chan struct{})
	}
}

// holdMore changes which transactions are held back, and keeps those that are.
func (d *delayer) holdMore(which func(*etcdserverpb.TxnRequest) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.holds = which
}

// attempts returns how many transactions were held back since the last call of unheard.
func (d *delayer) attempts() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.caught
}

// deliver sends what was held back, and nothing is from now on. None of it may be
// carried out.
func (d *delayer) deliver(t testing.TB) {
	t.Helper()
	d.hold(nil)
	d.mu.Lock()
	late := d.late
	d.late = nil
	d.mu.Unlock()
	if len(late) == 0 {
		t.Fatal("nothing was held back: this test shows nothing")
	}
	for _, send := range late {
		if r, err := send(); err != nil || r.Succeeded {
			t.Errorf("what came late was carried out: %v, %v", r.GetSucceeded(), err)
		}
	}
}

// writes are transactions that put a claim.
func writes(r *etcdserverpb.TxnRequest) bool {
	for _, op := range r.Success {
		if p := op.GetRequestPut(); p != nil && strings.Contains(string(p.Key), "claims/") {
			return true
		}
	}
	return false
}

func all(*etcdserverpb.TxnRequest) bool { return true }

// delayed opens a store whose requests go by a delayer, with a prefix of its own.
func delayed(t testing.TB) (s *etcdlock.Store, d *delayer, prefix string) {
	t.Helper()
	d = new(delayer)
	s, prefix = intercepted(t, d.carry)
	return s, d, prefix
}

// intercepted opens a store whose requests go by a function, with a prefix of its own.
func intercepted(t testing.TB, carry grpc.UnaryClientInterceptor) (s *etcdlock.Store, prefix string) {
	t.Helper()
	return interceptedAt(t, shared, carry)
}

func interceptedAt(t testing.TB, e *servers.Etcd, carry grpc.UnaryClientInterceptor) (s *etcdlock.Store, prefix string) {
	t.Helper()
	prefix = rand.Text() + "/"
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + e.Addr()}, Logger: zap.NewNop(), DialTimeout: patience,
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(carry)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s = must.Get(etcdlock.New(client, &etcdlock.Options{Prefix: prefix}))
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), client.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, prefix
}

// unheard makes a call that etcd never hears of. The caller gives up when the call is held back.
func (d *delayer) unheard(t testing.TB, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d.mu.Lock()
	d.caught, d.giveUp = 0, cancel
	d.mu.Unlock()
	if err := call(ctx); err == nil || errors.Is(err, driver.ErrLost) {
		t.Fatalf("%v, want that it is unknown", err)
	}
}

// TestLateRenewal has a renewal arrive after the last one, with Leave, or after the
// release, when the name is another claim's: it prolongs neither.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(t *testing.T, s *etcdlock.Store, c driver.Claim){
		"left": func(t *testing.T, s *etcdlock.Store, c driver.Claim) {
			last := []driver.Renewal{{Claim: c, Leave: true}}
			servers.Await(t, "last renewal", func() error { return s.Renew(t.Context(), last)[0] })
		},
		"released": func(t *testing.T, s *etcdlock.Store, c driver.Claim) {
			release(t, s, c)
			granted(t, s, exclusive("key", "next"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, by, prefix := delayed(t)
			c := admin(t, shared.Addr())
			claim, long := exclusive("key", "mine"), exclusive("key", "mine")
			granted(t, s, claim)
			was := string(under(t, c, prefix+"claims/").Kvs[0].Key)
			long.TTL = time.Hour
			by.hold(writes)
			by.unheard(t, func(ctx context.Context) error { return renew(ctx, s, long.Claim) })
			by.hold(nil)
			then(t, s, claim.Claim)
			before := under(t, c, prefix+"claims/")
			by.deliver(t)
			after := under(t, c, prefix+"claims/")
			if after.Count != 1 || string(after.Kvs[0].Key) != was || after.Kvs[0].String() != before.Kvs[0].String() {
				t.Errorf("it was %v, and is %v, and the name of the first %s", before.Kvs, after.Kvs, was)
			}
		})
	}
}

// TestLateAcquire has a claim arrive after its release, which could not be heard of
// when it was made, either: the store sees to it that it is refused.
func TestLateAcquire(t *testing.T) {
	t.Parallel()
	s, by, prefix := delayed(t)
	c := admin(t, shared.Addr())
	granted(t, s, exclusive("else", "else")) // so that there is a lease
	claim := exclusive("key", "mine")
	by.hold(writes)
	by.unheard(t, func(ctx context.Context) error { _, err := s.Acquire(ctx, claim); return err })
	by.holdMore(all)
	by.unheard(t, func(ctx context.Context) error {
		return s.Release(ctx, []driver.Release{{Claim: claim.Claim, Late: true}})[0]
	})
	by.hold(nil)
	servers.Await(t, "tomb", func() error {
		if under(t, c, prefix+"ended/mine").Count == 0 {
			return errors.New("the id may come back")
		}
		return nil
	})
	by.deliver(t)
	granted(t, openStore(t, shared.URL()+"?prefix="+prefix), exclusive("key", "next"))
}

// TestLateReader has a reader arrive late to join the phase of a reader that has ended. A
// writer or a slot has held since: the late reader gets a larger token.
func TestLateReader(t *testing.T) {
	t.Parallel()
	slot := reader("slot")
	slot.Limit = 9
	for name, ends := range map[string]func(t *testing.T, s *etcdlock.Store, first driver.Ask) (token uint64){
		"writer": func(t *testing.T, s *etcdlock.Store, first driver.Ask) uint64 {
			release(t, s, first.Claim)
			writer := exclusive("key", "writer")
			defer release(t, s, writer.Claim)
			return granted(t, s, writer).Fence
		},
		"slot": func(t *testing.T, s *etcdlock.Store, _ driver.Ask) uint64 {
			defer release(t, s, slot.Claim)
			return granted(t, s, slot).Fence
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, by, prefix := delayed(t)
			other := openStore(t, shared.URL()+"?prefix="+prefix)
			first, late := reader("first"), reader("late")
			granted(t, other, first)
			granted(t, s, exclusive("else", "else")) // so that there is a lease
			by.hold(func(r *etcdserverpb.TxnRequest) bool { return writes(r) && len(r.Compare) > 2 })
			by.unheard(t, func(ctx context.Context) error { _, err := s.Acquire(ctx, late); return err })
			token := ends(t, other, first)
			by.deliver(t)
			if g := grantedAtLast(t, s, late); g.Fence <= token {
				t.Errorf("the late reader has token %d after %d", g.Fence, token)
			}
		})
	}
}

// TestLateAgreement has a reader given the token of one who has left since, when
// another has the larger one that both had before.
func TestLateAgreement(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *scene) {
		s, by, prefix := delayed(t)
		other := openStore(t, shared.URL()+"?prefix="+prefix)
		first, writer, second, third := reader("first"), waiting("key", "writer"), reader("second"), reader("third")
		granted(t, other, first)
		t.begin()
		refused(t, other, writer)
		refused(t, s, second)
		refused(t, other, third)
		release(t, other, writer.Claim)
		by.hold(writes)
		by.unheard(t, func(ctx context.Context) error { _, err := s.Acquire(ctx, second); return err })
		release(t, other, first.Claim)
		token := grantedAtLast(t, other, third).Fence
		by.deliver(t)
		if g := grantedAtLast(t, s, second); g.Fence != token {
			t.Errorf("one reader has token %d, and the other %d", g.Fence, token)
		}
	})
}

// grantedAtLast asks for a claim in the queue, which may have lost its place meanwhile.
func grantedAtLast(t testing.TB, s driver.Store, a driver.Ask) (g driver.Grant) {
	t.Helper()
	servers.Await(t, "grant", func() error {
		if g = asked(t, s, a); !g.OK {
			return errors.New("it was refused")
		}
		return nil
	})
	return g
}

func reader(id string) driver.Ask {
	a := waiting("key", id)
	a.Weight = 1
	return a
}

func release(t testing.TB, s driver.Store, c driver.Claim) {
	t.Helper()
	end(t, s, driver.Release{Claim: c})
}

// end releases a claim that stands. A release that was not answered may have ended the
// claim.
func end(t testing.TB, s driver.Store, r driver.Release) {
	t.Helper()
	tried := false
	servers.Await(t, "release", func() error {
		err := s.Release(t.Context(), []driver.Release{r})[0]
		switch {
		case errors.Is(err, driver.ErrLost) && tried:
			return nil
		case errors.Is(err, driver.ErrLost):
			t.Fatalf("%s was lost before its release", r.ID)
		}
		tried = true
		return err
	})
}

// TestReleaseOfAnothers releases a claim by a store that has not made it. When that
// fails the claim stands until it is released again.
func TestReleaseOfAnothers(t *testing.T) {
	t.Parallel()
	b, by, prefix := delayed(t)
	a := openStore(t, shared.URL()+"?prefix="+prefix)
	claim := exclusive("key", "mine")
	granted(t, a, claim)
	by.hold(all)
	by.unheard(t, func(ctx context.Context) error { return b.Release(ctx, []driver.Release{{Claim: claim.Claim}})[0] })
	by.hold(nil)
	for _, s := range []*etcdlock.Store{b, a} { // b once it has ended the release
		servers.Await(t, "renewal", func() error { return renew(t.Context(), s, claim.Claim) })
	}
	release(t, b, claim.Claim)
	if err := answered(t, func(ctx context.Context) error { return renew(ctx, a, claim.Claim) }); !errors.Is(err, driver.ErrLost) {
		t.Errorf("renewal after its release: %v", err)
	}
	granted(t, a, exclusive("key", "next"))
}

// TestLeft asks for a claim that was left, renews and releases it, by the store that
// has left it and by another, also when a release has failed: it stands as it was
// left until it is released.
func TestLeft(t *testing.T) {
	t.Parallel()
	c := admin(t, shared.Addr())
	a, by, prefix := delayed(t)
	b := openStore(t, shared.URL()+"?prefix="+prefix)
	claim := exclusive("key", "mine")
	last := driver.Renewal{Claim: claim.Claim, Leave: true}
	token := granted(t, a, claim).Fence
	last.TTL = 2 * time.Minute
	servers.Await(t, "last renewal", func() error { return a.Renew(t.Context(), []driver.Renewal{last})[0] })
	as := under(t, c, prefix+"claims/").Kvs[0].String()
	same := func(after string) {
		t.Helper()
		if r := under(t, c, prefix+"claims/"); r.Count != 1 || r.Kvs[0].String() != as {
			t.Errorf("after %s it is %v, and was %s", after, r.Kvs, as)
		}
	}
	for name, s := range map[string]*etcdlock.Store{"the first": a, "another": b} {
		if g := granted(t, s, claim); g.Fence != token || g.TTL <= 0 || g.TTL > claim.TTL {
			t.Errorf("%s store grants %+v", name, g)
		}
		servers.Await(t, "renewal", func() error { return renew(t.Context(), s, claim.Claim) })
		same("renewal by " + name)
		refused(t, s, exclusive("key", "other"))
	}
	by.hold(all)
	by.unheard(t, func(ctx context.Context) error { return a.Release(ctx, []driver.Release{{Claim: claim.Claim}})[0] })
	by.hold(nil)
	servers.Await(t, "end of the release", func() error { return renew(t.Context(), a, claim.Claim) })
	same("a release that failed")
	release(t, b, claim.Claim)
	granted(t, b, exclusive("key", "next"))
}
