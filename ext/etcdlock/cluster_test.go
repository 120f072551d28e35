package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
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

// TestMemberFails has a hundred locks held and a hundred waited for when a member
// fails, first the leader, then one that follows.
func TestMemberFails(t *testing.T) {
	t.Parallel()
	c := servers.StartEtcdCluster(t)
	const ttl = 4 * time.Second
	a := locker(t, c.URL(), &holdfast.Options{TTL: ttl, Owner: "a"})
	b := locker(t, c.URL(), &holdfast.Options{TTL: ttl, Owner: "b"})
	for _, harm := range harms {
		t.Run("leader "+harm.name, func(t *testing.T) {
			handOverAll(t, harm.name, a, b, func() func() { return harm.do(c.Leader()) })
		})
		c.Leader()
		t.Run("follower "+harm.name, func(t *testing.T) {
			handOverAll(t, "other "+harm.name, b, a, func() func() { return harm.do(c.Followers()[0]) })
		})
		c.Leader()
	}
}

// handOverAll takes a hundred locks, has another process wait for them, lets harm
// be done, and hands the locks over while it lasts.
func handOverAll(t *testing.T, name string, from, to *holdfast.Locker, harm func() (undo func())) {
	const n = 100
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var holders [n]*holdfast.Lock
	for i := range holders {
		holders[i] = lockAgain(ctx, t, from, fmt.Sprint(name, i))
		if holders[i] == nil {
			return
		}
	}
	var freed [n]atomic.Bool
	var waiters sync.WaitGroup
	for i, held := range holders {
		waiters.Go(func() {
			l := lockAgain(ctx, t, to, held.Key())
			if l == nil {
				return
			}
			if !freed[i].Load() && held.Err() == nil {
				t.Errorf("%s has two holders", held.Key())
			}
			if l.Fence() <= held.Fence() {
				t.Errorf("%s: token %d after %d", held.Key(), l.Fence(), held.Fence())
			}
			if err := l.Unlock(); err != nil && !errors.Is(err, holdfast.ErrLost) {
				t.Logf("%s: unlock: %v", held.Key(), err)
			}
		})
	}
	eventually(t, "hundred who wait", func() error {
		hs, err := to.Holders(ctx, fmt.Sprint(name, n-1))
		if err == nil && len(hs) < 2 {
			err = fmt.Errorf("there are %d", len(hs))
		}
		return err
	})
	undo := harm()
	defer undo()
	began := time.Now()
	lost := 0
	for i, l := range holders {
		if l.Err() != nil {
			lost++
		}
		freed[i].Store(true)
		go l.Unlock() // It may take as long as the election.
	}
	waiters.Wait()
	t.Logf("%d of %d had been lost; the others had them all %v later", lost, n, time.Since(began).Round(time.Millisecond))
}

// lockAgain waits for a lock, also if the cluster has no leader for a while.
func lockAgain(ctx context.Context, t *testing.T, lk *holdfast.Locker, key string) *holdfast.Lock {
	for {
		l, err := lk.Lock(ctx, key)
		if err == nil {
			return l
		}
		if ctx.Err() != nil {
			t.Errorf("%s: %v", key, err)
			return nil
		}
		<-time.After(50 * time.Millisecond)
	}
}

// TestClientCutOff cuts a holder off from all members: it ends its locks before
// the cluster gives them to another.
func TestClientCutOff(t *testing.T) {
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
	t.Parallel()
	c := servers.StartEtcdCluster(t)
	c.Followers()[0].Kill()
	drivertest.Run(t, opening(c.URL()))
}
