package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// Pitfalls that users of other libraries have met, and what happens here instead.

// TestSlowServer is where rueidislock hangs: asking takes longer than the limit
// of a call, so that the client cannot know what became of it, and the wake-up
// does not come.
func TestSlowServer(t *testing.T) {
	const ttl, slow = 6 * time.Second, 1500 * time.Millisecond // a call may take a sixth of the TTL, and at most a second
	t.Run("waiting", func(t *testing.T) {
		t.Parallel()
		r := servers.StartRedis(t)
		proxy := servers.StartProxy(t, r.Addr())
		held := mustLock(t, openLocker(t, r.URL()), "key")
		w := wait(t, "redis://"+proxy.Addr(), "key", holdfast.TTL(ttl))
		proxy.Replies.Delay(slow)
		before := w.tries.Load()
		mustUnlock(t, held)
		until(t, "calls to run into their limit", func() bool { return w.tries.Load() >= before+2 || len(w.done) > 0 })
		proxy.Replies.Delay(0)
		_ = w.granted().Unlock() // A slow machine may have lost it since: it was not renewed in time.
	})
	t.Run("asking", func(t *testing.T) {
		t.Parallel()
		r := servers.StartRedis(t)
		proxy := servers.StartProxy(t, r.Addr())
		a, b := openLocker(t, "redis://"+proxy.Addr()), openLocker(t, r.URL())
		proxy.Replies.Delay(slow)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := a.Lock(ctx, "key", holdfast.TTL(time.Hour)); err == nil || ctx.Err() != nil {
			t.Errorf("the server is too slow: %v; want an error before long", err)
		}
		// The server had granted it. It is given back, not left to its TTL.
		proxy.Replies.Delay(0)
		mustUnlock(t, mustLock(t, b, "key"))
	})
}

// TestRenewalStorm counts commands while many locks are held and others wait for
// them: rueidislock sends one at least for each lock and renewal, and more to
// whoever waits.
func TestRenewalStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	const held, waiters, ttl, periods = 500, 50, 9 * time.Second, 2
	r := servers.StartRedis(t)
	var renewed atomic.Int64
	a := newLocker(t, openStore(t, r.URL()), &holdfast.Options{TTL: ttl, Trace: &holdfast.Trace{
		Renewed: func(holdfast.Event) { renewed.Add(1) },
	}})
	b := openLocker(t, r.URL())
	observe := func() (commands, renewals int64, took time.Duration) {
		before, from, start := ran(t, r, "evalsha"), renewed.Load(), time.Now()
		until(t, "renewals", func() bool { return renewed.Load() >= from+periods*held })
		return int64(ran(t, r, "evalsha") - before), renewed.Load() - from, time.Since(start)
	}
	key := func(i int) string { return fmt.Sprint("key", i) }
	var locks []*holdfast.Lock // a lock that is dropped is not renewed
	for i := range held {
		locks = append(locks, mustLock(t, a, key(i)))
	}
	commands, renewals, _ := observe()
	t.Logf("%d renewals took %d commands", renewals, commands)
	if commands*5 > renewals {
		t.Errorf("%d renewals took %d commands, want less than a fifth", renewals, commands)
	}

	ctx, stop := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for i := range waiters {
		waiting.Go(func() {
			if _, err := b.Lock(ctx, key(i)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s was held all the time: %v", key(i), err)
			}
		})
	}
	for i := range waiters {
		awaitLine(t, a, key(i), 1)
	}
	commands, renewals, took := observe()
	t.Logf("with %d waiters, %d renewals took %d commands in %v", waiters, renewals, commands, took)
	if most := float64(renewals)/5 + 1.5*waiters*took.Seconds(); float64(commands) > most {
		t.Errorf("%d commands, want at most %.0f: those who wait ask more than once a second", commands, most)
	}
	stop()
	waiting.Wait()
	for _, lock := range locks {
		mustUnlock(t, lock)
	}
}

// TestStarvation lets a process that wants the lock now and then compete with
// others that want it all the time: with bsm/redislock, whoever happens to ask
// in the right moment is next, which is hardly ever the one who sleeps longest.
func TestStarvation(t *testing.T) {
	const busy, goroutines, times = 8, 4, 20
	r := servers.StartRedis(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var mu sync.Mutex
	last, passed := -1, 0 // who had the lock, and how often it passed from one process to another
	turn := func(who int) int {
		mu.Lock()
		defer mu.Unlock()
		if who != last {
			last = who
			passed++
		}
		return passed
	}
	var running sync.WaitGroup
	for who := range busy {
		locks := openLocker(t, r.URL())
		for range goroutines {
			running.Go(func() {
				for ctx.Err() == nil {
					lock, err := locks.Lock(ctx, "key")
					if err != nil {
						continue // the end
					}
					turn(who)
					if err := unlockAtOnce(lock); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	until(t, "the busy ones to take turns", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return passed > 2*busy
	})
	inLine := 0 // what had passed when the lone waiter last heard that it waits
	lone, worst := newLocker(t, openStore(t, r.URL()), &holdfast.Options{Trace: &holdfast.Trace{
		Tried: func(holdfast.Event) {
			mu.Lock()
			defer mu.Unlock()
			inLine = passed
		},
	}}), 0
	for range times {
		mu.Lock()
		inLine = passed
		mu.Unlock()
		lock := mustLock(t, lone, "key")
		now := turn(busy)
		mu.Lock()
		worst = max(worst, now-inLine)
		mu.Unlock()
		if err := unlockAtOnce(lock); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	running.Wait()
	t.Logf("%d processes of %d goroutines: a lone waiter saw the lock passed on %d times at most", busy, goroutines, worst)
	// Each of the others once, and who came in while it joined the queue.
	if worst > 2*busy {
		t.Errorf("the lock was passed on %d times before its turn, want at most %d", worst, 2*busy)
	}
}
