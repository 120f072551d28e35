package etcdlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

// TestFull fills etcd until it takes no more writes: what is held can be renewed and
// released, who waits is let in but not for long, and nothing new is granted.
func TestFull(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, "--quota-backend-bytes=4194304")
	c := admin(t, e.Addr())
	s := openStore(t, e.URL())
	holder, late, unknown := exclusive("key", "holder"), exclusive("late", "late"), exclusive("unknown", "unknown")
	granted(t, s, unknown)
	granted(t, s, holder)
	granted(t, s, late)
	lk := locker(t, e.URL(), &holdfast.Options{TTL: 4 * time.Second})
	before, err := locker(t, e.URL(), nil).Lock(t.Context(), "waited for")
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		lock *holdfast.Lock
		err  error
	}
	got := make(chan result, 1)
	go func() {
		l, err := lk.Lock(t.Context(), "waited for")
		got <- result{l, err}
	}()
	eventually(t, "waiter", func() error {
		hs, err := lk.Holders(t.Context(), "waited for")
		if err == nil && len(hs) < 2 {
			err = errors.New("nobody waits")
		}
		return err
	})
	eventually(t, "end of the space", func() error {
		_, err := c.Put(t.Context(), fmt.Sprint("filler", time.Now().UnixNano()), strings.Repeat("x", 1<<20))
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			return fmt.Errorf("there is more: %w", errors.Join(err, errors.New("the write was taken")))
		}
		return nil
	})
	if g, err := s.Acquire(t.Context(), exclusive("other", "other")); g.OK || !errors.Is(err, rpctypes.ErrNoSpace) || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("a new lock: %v, %v; want an error that says what to do", g, err)
	}
	if w, err := s.Check(t.Context()); err != nil || len(w) != 1 || !strings.Contains(w[0], "alarm") {
		t.Errorf("Check returned %q, %v; want a warning", w, err)
	}
	// The next in line is let in, but cannot be confirmed.
	if err := before.Unlock(); err != nil {
		t.Errorf("unlock: %v", err)
	}
	select {
	case r := <-got:
		if r.err == nil {
			<-r.lock.Done()
			r.err = r.lock.Err()
		}
		if !errors.Is(r.err, rpctypes.ErrNoSpace) {
			t.Errorf("the next in line was told %v", r.err)
		}
	case <-time.After(patience):
		t.Error("the next in line was not let in")
	}
	late.Late, unknown.Late = true, true
	if errs := s.Renew(t.Context(), []driver.Claim{holder}); errs[0] != nil {
		t.Errorf("renewal: %v", errs)
	}
	other := openStore(t, e.URL()) // which has to look for it
	if err := other.Release(t.Context(), []driver.Claim{unknown})[0]; err != nil {
		t.Errorf("release by another client: %v", err)
	}
	for _, claim := range []driver.Claim{holder, late} {
		if err := s.Release(t.Context(), []driver.Claim{claim})[0]; err != nil {
			t.Errorf("release of %s: %v", claim.ID, err)
		}
	}
	eventually(t, "end of all claims", func() error {
		if r := under(t, c, "holdfast/claims/"); r.Count != 0 {
			return fmt.Errorf("there are %d, such as %s", r.Count, r.Kvs[0].Key)
		}
		return nil
	})
}

// TestRestart kills the only member and starts it again, while a lock is held and
// waited for: leases begin anew, and nobody gets what is held.
func TestRestart(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	a, b := locker(t, e.URL(), &holdfast.Options{TTL: time.Minute}), locker(t, e.URL(), &holdfast.Options{TTL: time.Minute})
	held, err := a.Lock(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *holdfast.Lock, 1)
	go func() { got <- lockAgain(t.Context(), t, b, "key") }()
	for range 3 {
		e.Restart()
		eventually(t, "look", func() error {
			hs, err := b.Holders(t.Context(), "key")
			if err == nil && (len(hs) < 1 || hs[0].Fence != held.Fence()) {
				t.Fatalf("after a restart the key has %+v", hs)
			}
			return err
		})
	}
	if held.Err() != nil {
		t.Errorf("the lock was lost: %v", held.Err())
	}
	select {
	case l := <-got:
		t.Fatalf("the lock with token %d was given to another, with %d", held.Fence(), l.Fence())
	default:
	}
	if err := held.Unlock(); err != nil {
		t.Error(err)
	}
	select {
	case l := <-got:
		if l.Fence() <= held.Fence() {
			t.Errorf("token %d after %d", l.Fence(), held.Fence())
		}
		_ = l.Unlock()
	case <-time.After(patience):
		t.Fatal("the waiter was not let in")
	}
}
