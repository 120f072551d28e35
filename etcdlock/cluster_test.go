package etcdlock_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/outage"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// harms are what befalls a member, and how it ends.
var harms = []struct {
	name string
	do   func(e *servers.Etcd) (undo func())
}{
	{"killed", func(e *servers.Etcd) func() { e.Kill(); return e.Restart }},
	{"paused", func(e *servers.Etcd) func() { e.Pause(); return e.Resume }},
	{"cut off", func(e *servers.Etcd) func() { e.CutOff(true); return func() { e.CutOff(false) } }},
}

// TestMemberFails has a hundred locks held, waited for and asked for when a member
// fails, first the leader, then one that follows. It does not look at the order: who
// has no answer for three seconds may lose its place.
func TestMemberFails(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 60 s: make prove")
	}
	t.Parallel()
	c := servers.StartEtcdCluster(t)
	opts := &holdfast.Options{TTL: 2 * patience} // No lock is to be lost, however long an election takes.
	s := outage.Scene{
		TTL:     opts.TTL,
		Holders: locker(t, c.URL(), opts),
		Waiters: locker(t, c.URL(), opts),
		Late:    locker(t, c.URL(), opts),
	}
	for _, harm := range harms {
		for _, who := range []string{"leader", "follower"} {
			s.Name = who + " " + harm.name
			harmed := c.Leader()
			if who == "follower" {
				harmed = c.Followers()[0]
			}
			s.Harm = func() func() { return harm.do(harmed) }
			s.Elected = func() {
				servers.Await(t, "other leader", func() error {
					if c.Leader() == harmed {
						return errors.New("it is still the same")
					}
					return nil
				})
			}
			t.Run(s.Name, s.Play)
			c.Leader()
		}
	}
}

// lockAgain waits for a lock, also if the cluster has no leader for a while.
func lockAgain(ctx context.Context, t *testing.T, lk *holdfast.Locker, key string) *holdfast.Lock {
	for {
		l, err := lk.Lock(ctx, key)
		if err == nil {
			return l
		}
		if rest.For(ctx, 50*time.Millisecond) != nil {
			t.Errorf("%s: %v", key, err)
			return nil
		}
	}
}

// TestClientCutOff cuts a holder off from all members: it ends its locks before
// the cluster gives them to another.
func TestClientCutOff(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 15 s: make prove")
	}
	t.Parallel()
	c := servers.StartEtcdCluster(t)
	var links []*servers.Proxy
	var addrs []string
	for _, addr := range c.Addrs() {
		p := servers.StartProxy(t, addr)
		links, addrs = append(links, p), append(addrs, p.Addr())
	}
	const n = 20
	a := locker(t, "etcd://"+strings.Join(addrs, ","), &holdfast.Options{TTL: 3 * time.Second})
	b := locker(t, c.URL(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var waiters sync.WaitGroup
	for i := range n {
		held := lockAgain(ctx, t, a, fmt.Sprint("key", i))
		if held == nil {
			return
		}
		waiters.Go(func() {
			l := lockAgain(ctx, t, b, held.Key())
			if l == nil {
				return
			}
			if held.Err() == nil {
				t.Errorf("%s was given to another while its holder, who was cut off, believed to have it", held.Key())
			}
			if l.Fence() <= held.Fence() {
				t.Errorf("%s: token %d after %d", held.Key(), l.Fence(), held.Fence())
			}
			_ = l.Unlock()
		})
	}
	for _, p := range links {
		p.Blackhole(true)
	}
	waiters.Wait()
	for _, p := range links {
		p.Blackhole(false)
	}
}

// TestContractInACluster runs while one member is down, so that each call may
// have to look for another.
func TestContractInACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 60 s: make prove")
	}
	t.Parallel()
	c := servers.StartEtcdCluster(t)
	c.Followers()[0].Kill()
	drivertest.Run(t, opening(c.URL()))
}

// TestMemberBehind has a member that knows nothing of the latest writes, and reaches no other
// member, get a request of the watch of a claim in a long queue. The member must not answer
// from its own state: to the store, an old revision is that of a restored snapshot.
func TestMemberBehind(t *testing.T) {
	t.Parallel()
	c := servers.StartEtcdCluster(t)
	behind, up := c.Nodes[0], c.Nodes[1:]
	alone := admin(t, behind.Direct())
	under(t, alone, "any/") // The connection stands.
	behind.CutOff(true)
	behind.Pause()
	for _, e := range up {
		e.Restart() // which ends the streams from which behind would read the writes
	}
	var armed atomic.Bool
	met := make(chan struct{}, 10)
	b, prefix := interceptedAt(t, up[0], func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*etcdserverpb.TxnRequest); !ok || !armed.CompareAndSwap(true, false) {
			return invoke(ctx, method, req, reply, conn, opts...)
		}
		defer func() { met <- struct{}{} }()
		for _, e := range up {
			e.Pause()
			defer e.Resume()
		}
		behind.Resume()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond)
		defer cancel()
		return alone.ActiveConnection().Invoke(ctx, method, req, reply)
	})
	a := openStore(t, up[0].URL()+"?prefix="+prefix)
	inTime(t, func(s *scene) {
		claim := waiting("long"+rand.Text(), rand.Text())
		last(s, a, b, claim)
		armed.Store(true)
		defer watch(s, b, claim.Claim, func(driver.Grant) {})()
		select {
		case <-met:
		case <-time.After(aWhile):
			s.missing("a request of the watch")
		}
		if err := answered(s, func(ctx context.Context) error { _, err := b.Acquire(ctx, claim); return err }); err != nil {
			t.Errorf("after the answer of a member that is behind: %v", err)
		}
	})
	behind.CutOff(false)
}
