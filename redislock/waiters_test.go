package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A waiting is a call of Lock that has to wait.
type waiting struct {
	t     *testing.T
	tries atomic.Int64 // answers and errors that were no grant
	done  chan error
	lock  *holdfast.Lock
}

// wait lets a process of its own wait in the queue, and returns when it does.
func wait(t *testing.T, url, key string, opts ...holdfast.LockOption) *waiting {
	t.Helper()
	w := &waiting{t: t, done: make(chan error, 1)}
	locks := newLocker(t, openStore(t, url), &holdfast.Options{Trace: &holdfast.Trace{
		Tried: func(holdfast.Event) { w.tries.Add(1) },
	}})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	go func() {
		lock, err := servers.Patient(ctx, locks.Lock, key, opts...)
		w.lock = lock
		w.done <- err
	}()
	// On a slow machine the holder may have lost the lock by then.
	until(t, "the one who waits to be in the queue", func() bool { return w.tries.Load() >= 2 || len(w.done) > 0 })
	return w
}

// granted returns when it holds the lock.
func (w *waiting) granted() *holdfast.Lock {
	w.t.Helper()
	if err := <-w.done; err != nil {
		w.t.Fatalf("the one who waited: %v", err)
	}
	return w.lock
}

// ran returns how often the server has run a command, also within scripts.
func ran(t *testing.T, r *servers.Redis, command string) int {
	t.Helper()
	calls, _, _ := strings.Cut(strings.TrimPrefix(r.Info("cmdstat_"+command), "calls="), ",")
	n, err := strconv.Atoi(calls)
	if err != nil {
		t.Fatalf("calls of %s: %v", command, err)
	}
	return n
}

func mustLock(t *testing.T, locks *holdfast.Locker, key string, opts ...holdfast.LockOption) *holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock, err := servers.Patient(ctx, locks.Lock, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func mustUnlock(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	if err := unlock(lock); err != nil {
		t.Fatal(err)
	}
}

// TestLostPush throws away the message of a grant together with whatever else
// the server says to the one who waits.
func TestLostPush(t *testing.T) {
	r := servers.StartRedis(t)
	proxy := servers.StartProxy(t, r.Addr())
	held := mustLock(t, openLocker(t, r.URL()), "key")
	w := wait(t, "redis://"+proxy.Addr(), "key")
	proxy.Replies.Drop(true)
	before := proxy.Replies.Dropped()
	mustUnlock(t, held)
	until(t, "the push to be lost", func() bool { return proxy.Replies.Dropped() > before })
	proxy.Replies.Drop(false)
	w.granted()
}

// TestSubscriptionHangs: the first claim of a Store that reports losses begins the subscription, and
// the claim itself needs the time of a call whose TTL is short.
func TestSubscriptionHangs(t *testing.T) {
	t.Parallel()
	l := &liar{holds: make(map[string]bool), freed: make(map[string]bool), grant: honest}
	addr := servers.StartLiar(t, func(connection int, words []string) any {
		if words[0] == "SUBSCRIBE" {
			<-t.Context().Done()
		}
		return l.answer(connection, words)
	})
	tries := 0
	until(t, "a grant to a first claim", func() bool { // A slow machine may need all the time for the claim.
		store := openStore(t, "redis://"+addr)
		defer store.Close()
		defer store.Notify(func(string, string, error) {})()
		ctx, cancel := context.WithTimeout(t.Context(), 80*time.Millisecond)
		defer cancel()
		tries++
		g, err := store.Acquire(ctx, driver.Ask{Claim: exclusive(fmt.Sprint("key", tries), "id")})
		if err != nil {
			t.Log(err)
		}
		return g.OK
	})
}

// TestOneListener counts the connections of a process that waits for many keys.
func TestOneListener(t *testing.T) {
	t.Parallel()
	const keys = 100
	r := servers.StartRedis(t)
	a, b := openLocker(t, r.URL()), openLocker(t, r.URL())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var held []*holdfast.Lock
	var waiting sync.WaitGroup
	for i := range keys {
		key := fmt.Sprint("key", i)
		held = append(held, mustLock(t, a, key))
		waiting.Go(func() {
			lock, err := servers.Patient(ctx, b.Lock, key)
			if err == nil {
				err = unlockAtOnce(lock)
			}
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	for i := range keys {
		awaitLine(t, a, fmt.Sprint("key", i), 1)
	}
	until(t, "two processes to listen on one connection each", func() bool {
		clients, _ := r.Must("CLIENT", "LIST", "TYPE", "pubsub").(string)
		return strings.Count(clients, "\n") == 2
	})
	for _, lock := range held {
		mustUnlock(t, lock)
	}
	waiting.Wait()
}

// TestLostListener cuts the connection on which a grant would have come, right
// before it does.
func TestLostListener(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	a := openLocker(t, r.URL())
	for i := range 5 {
		key := fmt.Sprint("key", i)
		held := mustLock(t, a, key)
		w := wait(t, r.URL(), key)
		r.Must("CLIENT", "KILL", "TYPE", "pubsub")
		mustUnlock(t, held)
		if err := unlockAtOnce(w.granted()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSilentWaiter has the first in the queue vanish behind a dead network, where the
// server cannot see that it is gone. The next one waits for a few seconds only.
func TestSilentWaiter(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	proxy := servers.StartProxy(t, r.Addr())
	held := mustLock(t, openLocker(t, r.URL()), "key", holdfast.TTL(time.Minute))
	wait(t, "redis://"+proxy.Addr(), "key", holdfast.TTL(time.Minute))
	next := wait(t, r.URL(), "key", holdfast.TTL(time.Minute))
	proxy.Blackhole(true)
	mustUnlock(t, held)
	next.granted()
	proxy.Blackhole(false)
}

// TestCancelledAtItsTurn cancels waits at the moment of the grant. Whether the grant or the
// cancel came first, the key is free afterwards, and nothing is left.
func TestCancelledAtItsTurn(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	a, b := openLocker(t, r.URL()), openLocker(t, r.URL())
	const times = 50
	got := 0
	for range times {
		held := mustLock(t, a, "key", holdfast.TTL(time.Minute))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() {
			lock, err := servers.Patient(ctx, b.Lock, "key", holdfast.TTL(time.Minute))
			if err == nil {
				got++
				err = unlockAtOnce(lock)
			}
			done <- err
		}()
		awaitLine(t, a, "key", 1)
		timer := time.AfterFunc(rand.N(time.Millisecond), cancel)
		mustUnlock(t, held)
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		timer.Stop()
		cancel()
	}
	t.Logf("%d of %d got the lock before they were cancelled", got, times)
	mustUnlock(t, mustLock(t, a, "key"))
	until(t, "the key to be free of all claims", func() bool {
		holders, err := a.Holders(context.Background(), "key")
		return err == nil && len(holders) == 0
	})
}

// TestExpiry lets those who wait find out for themselves that a holder is gone,
// without asking all the time or all at once.
func TestExpiry(t *testing.T) {
	t.Parallel()
	const ttl, waiters = 3 * time.Second, 20
	r := servers.StartRedis(t)
	store := openStore(t, r.URL())
	mustLock(t, newLocker(t, store, nil), "key", holdfast.TTL(ttl), holdfast.NoRenew())
	start := time.Now()
	var all []*waiting
	for range waiters {
		all = append(all, wait(t, r.URL(), "key"))
	}
	before := ran(t, r, "evalsha")
	var turns sync.WaitGroup
	for _, w := range all { // at once: on a slow machine some lose their places, and come later
		turns.Go(func() {
			err := <-w.done
			if err == nil {
				err = unlockAtOnce(w.lock)
			}
			if err != nil {
				t.Errorf("the one who waited: %v", err)
			}
		})
	}
	turns.Wait()
	took := time.Since(start)
	asked := ran(t, r, "evalsha") - before
	perWaiter := float64(asked) / waiters
	t.Logf("%d waiters had their turns within %v of a lease of %v: %.1f scripts for each", waiters, took, ttl, perWaiter)
	// A heartbeat a second, and then a renewal and a release.
	if most := took.Seconds()*1.5 + 4; perWaiter > most {
		t.Errorf("%.1f scripts for each waiter, want at most %.1f", perWaiter, most)
	}
}

// TestKilledClient has a holder that renews vanish without a word: the next one
// gets the lock when the lease ends, and not before.
func TestKilledClient(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	proxy := servers.StartProxy(t, r.Addr())
	const ttl = 2 * time.Second
	held := mustLock(t, openLocker(t, "redis://"+proxy.Addr()), "key", holdfast.TTL(ttl))
	last := held.Fence()
	w := wait(t, r.URL(), "key")
	proxy.Blackhole(true)
	next := w.granted()
	if held.Err() == nil {
		t.Error("the next one has the lock, and the old holder does not know")
	}
	if token := next.Fence(); token <= last {
		t.Errorf("token %d after %d", token, last)
	}
	proxy.Blackhole(false)
}
