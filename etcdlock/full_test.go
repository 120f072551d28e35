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

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// TestFull fills etcd until it takes no more writes: what is held can be renewed and
// released, who waits is let in but not for long, and nothing new is granted. Nor are tombs
// written.
func TestFull(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, "--quota-backend-bytes=4194304")
	c := admin(t, e.Addr())
	s := openStore(t, e.URL())
	holder, late, unknown := exclusive("key", "holder"), exclusive("late", "late"), exclusive("unknown", "unknown")
	granted(t, s, unknown)
	other, early := openStore(t, e.URL()), exclusive("early", "early")
	granted(t, s, early)
	end(t, other, driver.Release{Claim: early.Claim, Late: true}) // so that there is a lease for tombs
	granted(t, s, holder)
	granted(t, s, late)
	var toldFull atomic.Bool // by a renewal, if not by the last
	lk := locker(t, e.URL(), &holdfast.Options{TTL: 4 * time.Second, Trace: &holdfast.Trace{AtRisk: func(e holdfast.Event) {
		if errors.Is(e.Err, rpctypes.ErrNoSpace) {
			toldFull.Store(true)
		}
	}}})
	before := locked(t, locker(t, e.URL(), nil), "waited for")
	type result struct {
		lock *holdfast.Lock
		err  error
	}
	got := make(chan result, 1)
	go func() {
		l, err := servers.Patient(t.Context(), lk.Lock, "waited for")
		got <- result{l, err}
	}()
	servers.Await(t, "waiter", func() error {
		hs, err := lk.Holders(t.Context(), "waited for")
		if err == nil && len(hs) < 2 {
			err = errors.New("nobody waits")
		}
		return err
	})
	fill(t, c)
	err := answered(t, func(ctx context.Context) error { _, err := s.Acquire(ctx, exclusive("other", "other")); return err })
	if !errors.Is(err, rpctypes.ErrNoSpace) || !strings.Contains(err.Error(), "compacted") {
		t.Errorf("a new lock: %v; want an error that says what to do", err)
	}
	servers.Await(t, "warning of the alarm", func() error {
		if w, err := s.Check(t.Context()); err != nil || len(w) != 1 || !strings.Contains(w[0], "alarm") {
			return fmt.Errorf("Check returned %q, %w", w, err)
		}
		return nil
	})
	// The next in the queue is let in, but cannot be confirmed.
	if err := unlock(before); err != nil {
		t.Errorf("unlock: %v", err)
	}
	select {
	case r := <-got:
		if r.err == nil {
			select {
			case <-r.lock.Done():
				r.err = r.lock.Err()
			case <-time.After(patience):
			}
		}
		switch {
		case r.err == nil: // In a slow etcd a waiter gets a lease that lasts long enough for this TTL.
			unproved.Logf(t, "the next in the queue needed no other lease: %v", unlock(r.lock))
		case errors.Is(r.err, rpctypes.ErrNoSpace), errors.Is(r.err, holdfast.ErrLost) && toldFull.Load():
		case errors.Is(r.err, holdfast.ErrLost): // It has run out before the next try to confirm it.
			unproved.Logf(t, "the next in the queue was told %v", r.err)
		default:
			t.Errorf("the next in the queue was told %v", r.err)
		}
	case <-time.After(patience):
		t.Error("the next in the queue was not let in")
	}
	if err := answered(t, func(ctx context.Context) error { return renew(ctx, s, holder.Claim) }); err != nil {
		t.Errorf("renewal: %v", err)
	}
	end(t, other, driver.Release{Claim: unknown.Claim, Late: true}) // has to look for the claim
	if r := under(t, c, "holdfast/ended/unknown"); r.Count > 0 {
		t.Errorf("a tomb was written: %v", r.Kvs)
	}
	release(t, s, holder.Claim)
	end(t, s, driver.Release{Claim: late.Claim, Late: true})
	servers.Await(t, "end of all claims", func() error {
		if r := under(t, c, "holdfast/claims/"); r.Count != 0 {
			return fmt.Errorf("there are %d, such as %s", r.Count, r.Kvs[0].Key)
		}
		return nil
	})
}

// fill fills etcd until it takes no more writes.
func fill(t *testing.T, c *clientv3.Client) {
	t.Helper()
	servers.Await(t, "end of the space", func() error {
		_, err := c.Put(t.Context(), fmt.Sprint("filler", time.Now().UnixNano()), strings.Repeat("x", 1<<20))
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			return fmt.Errorf("there is more: %w", errors.Join(err, errors.New("the write was taken")))
		}
		return nil
	})
}

// TestFullCleaner has the cleaner end a claim that needs a tomb, in a full etcd: the cleaner
// writes no tomb, and the id of the claim can be requested again.
func TestFullCleaner(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, "--quota-backend-bytes=4194304")
	by := new(delayer)
	s, _ := interceptedAt(t, e, by.carry)
	a := exclusive("key", "id")
	granted(t, s, a)
	by.hold(all)
	by.unheard(t, func(ctx context.Context) error {
		return s.Release(ctx, []driver.Release{{Claim: a.Claim, Late: true}})[0]
	})
	fill(t, admin(t, e.Addr()))
	by.hold(nil)
	servers.Await(t, "refusal by etcd", func() error {
		g, err := s.Acquire(t.Context(), a)
		if !errors.Is(err, rpctypes.ErrNoSpace) {
			return fmt.Errorf("%+v, %w", g, errors.Join(err, errors.New("the claim is not over")))
		}
		return nil
	})
}

// TestFullBatch requests many claims at once from a full etcd: a batch of claims is refused,
// as each claim is.
func TestFullBatch(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t, "--quota-backend-bytes=4194304")
	w := new(turnstile)
	s, _ := interceptedAt(t, e, w.carry)
	granted(t, s, exclusive("else", "else")) // so that there is a lease
	fill(t, admin(t, e.Addr()))
	round := 0
	servers.Await(t, "batch", func() error {
		round++
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				a := exclusive(fmt.Sprint("key", i), fmt.Sprint("id", round, "-", i))
				if g, err := s.Acquire(t.Context(), a); g.OK {
					t.Errorf("%s was granted, with %v", a.Key, err)
				}
			})
		}
		all.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.batches) == 0 {
			return errors.New("all went alone")
		}
		return nil
	})
}

// TestRestart kills the only member and starts it again, while a lock is held and
// waited for: leases begin anew, and nobody gets what is held.
func TestRestart(t *testing.T) {
	t.Parallel()
	e := servers.StartEtcd(t)
	opts := &holdfast.Options{TTL: 10 * time.Minute} // Each restart may take long.
	a, b := locker(t, e.URL(), opts), locker(t, e.URL(), opts)
	held := locked(t, a, "key")
	got := make(chan *holdfast.Lock, 1)
	go func() { got <- lockAgain(t.Context(), t, b, "key") }()
	for range 3 {
		e.Restart()
		servers.Await(t, "look", func() error {
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
	if err := unlock(held); err != nil {
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
