package miniredis_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/goredis"
	"github.com/holdfast-go/holdfast/redislock/redisonce"
)

// onMiniredis runs a test on a miniredis with stores of both libraries. The
// package comment of redislock says what works there.
func onMiniredis(t *testing.T, test func(t *testing.T, m *miniredis.Miniredis, open func(testing.TB) *redislock.Store)) {
	t.Run("rueidis", func(t *testing.T) {
		t.Parallel()
		m := miniredis.RunT(t)
		test(t, m, func(t testing.TB) *redislock.Store {
			t.Helper()
			store := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, "redis://"+m.Addr()) })
			return store.(*redislock.Store)
		})
	})
	t.Run("go-redis", func(t *testing.T) {
		t.Parallel()
		m := miniredis.RunT(t)
		test(t, m, func(t testing.TB) *redislock.Store {
			// A busy machine may leave the test without a processor for seconds.
			client := redis.NewClient(&redis.Options{Addr: m.Addr(), DialTimeout: time.Minute, ReadTimeout: time.Minute})
			t.Cleanup(func() { client.Close() })
			return must.Get(goredis.New(client, nil))
		})
	})
}

// TestMiniredisLocker does what tests of applications do. miniredis counts no time
// unless it is told to, so locks of a process that has gone stay until FastForward.
func TestMiniredisLocker(t *testing.T) {
	t.Parallel()
	onMiniredis(t, func(t *testing.T, m *miniredis.Miniredis, open func(testing.TB) *redislock.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		locker := func() *holdfast.Locker {
			locks := must.Get(holdfast.New(open(t), &holdfast.Options{TTL: 5 * time.Minute})) // A busy machine does not renew in time.
			t.Cleanup(func() { locks.Close() })
			return locks
		}
		a, b := locker(), locker()

		t.Log("a lock with waiters")
		held := lock(ctx, t, a, "key")
		var waiters sync.WaitGroup
		for _, locks := range []*holdfast.Locker{a, b, locker(), locker()} {
			waiters.Go(func() {
				l, err := servers.Patient(ctx, locks.Lock, "key")
				if err != nil {
					t.Error(err)
					return
				}
				unlock(t, l)
			})
		}
		servers.Until(t, "the waiters to wait in the queue", func() bool { // One process sends one waiter.
			holders, err := b.Holders(ctx, "key")
			return err == nil && len(holders) == 1+3
		})
		unlock(t, held)
		waiters.Wait()

		t.Log("slots, readers and several keys")
		one, two := lock(ctx, t, a, "pool", holdfast.Slots(2)), lock(ctx, t, b, "pool", holdfast.Slots(2))
		wantHeld(t, b, "pool", holdfast.Slots(2))
		unlock(t, one, two)
		one, two = lock(ctx, t, a, "page", holdfast.Shared()), lock(ctx, t, b, "page", holdfast.Shared())
		wantHeld(t, b, "page")
		unlock(t, one, two)
		lockAll := func(ctx context.Context, _ string, opts ...holdfast.LockOption) (*holdfast.Group, error) {
			return a.LockAll(ctx, []string{"x", "y", "z"}, opts...)
		}
		group := must.Get(servers.Patient(ctx, lockAll, "all"))
		wantHeld(t, b, "y")
		unlock(t, group)

		t.Log("a renewal")
		renewed := make(chan holdfast.Event, 100)
		renewing := must.Get(holdfast.New(open(t), &holdfast.Options{Trace: &holdfast.Trace{Renewed: func(e holdfast.Event) { renewed <- e }}}))
		defer renewing.Close()
		kept := lock(ctx, t, renewing, "kept")
		for again := true; again; {
			select {
			case e := <-renewed:
				again = errors.Is(e.Err, os.ErrDeadlineExceeded)
				if e.Err != nil && !again {
					t.Error(e.Err)
				}
			case <-kept.Done():
				t.Error(kept.Err())
				again = false
			}
		}
		unlock(t, kept)

		t.Log("a process that has gone")
		c := driver.Claim{Key: "gone", ID: "gone", Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
		if g, err := open(t).Acquire(ctx, driver.Ask{Claim: c}); err != nil || !g.OK {
			t.Fatalf("Acquire: %+v, %v", g, err)
		}
		wantHeld(t, b, "gone")
		m.FastForward(c.TTL + time.Second)
		unlock(t, lock(ctx, t, b, "gone"))
		servers.Until(t, "miniredis to keep the highest token only", func() bool {
			m.FastForward(c.TTL) // A release that came late has left a tomb.
			return len(m.Keys()) == 1
		})
	})
}

// TestMiniredisIsQuiet opens a Locker, as programs do, which looks for settings that
// weaken locks.
func TestMiniredisIsQuiet(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	var log strings.Builder
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, "redis://"+m.Addr(), &holdfast.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	})
	if err := locks.Close(); err != nil || log.String() != "" {
		t.Errorf("closed with %v; logged %q", err, log.String())
	}
}

// TestMiniredisOnce has an effect once, with the records of both libraries.
func TestMiniredisOnce(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	locks := must.Get(holdfast.New(memlock.New(), nil))
	t.Cleanup(func() { locks.Close() })
	// A busy machine may leave the test without a processor for seconds.
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{m.Addr()}, DisableCache: true,
		Dialer: net.Dialer{Timeout: time.Minute}, ConnWriteTimeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	other := redis.NewClient(&redis.Options{Addr: m.Addr(), DialTimeout: time.Minute, ReadTimeout: time.Minute})
	t.Cleanup(func() { other.Close() })

	effects := 0
	charge := func(context.Context) ([]byte, error) {
		effects++
		return []byte("charged"), nil
	}
	do := func(records once.Records) {
		t.Helper()
		receipt, err := once.Runner{Locks: locks, Records: records, Retention: time.Hour}.Do(t.Context(), "order/42", charge)
		if err != nil || string(receipt) != "charged" {
			t.Errorf("%q, %v", receipt, err)
		}
	}
	first, second := redisonce.New(client, nil), redisonce.NewConn(must.Get(goredis.Conn(other)), nil)
	do(first)
	do(first)
	do(second)
	if effects != 1 {
		t.Errorf("%d effects, want 1", effects)
	}
	m.FastForward(2 * time.Hour)
	do(second)
	do(first)
	if effects != 2 {
		t.Errorf("%d effects after the retention, want 2", effects)
	}
}

func lock(ctx context.Context, t *testing.T, locks *holdfast.Locker, key string, opts ...holdfast.LockOption) *holdfast.Lock {
	t.Helper()
	return must.Get(servers.Patient(ctx, locks.Lock, key, opts...))
}

// unlock leaves to the background what is not answered in time.
func unlock(t *testing.T, held ...interface{ Unlock() error }) {
	t.Helper()
	for _, l := range held {
		if err := unlocking.Release(l.Unlock); err != nil {
			t.Error(err)
		}
	}
}

func wantHeld(t *testing.T, locks *holdfast.Locker, key string, opts ...holdfast.LockOption) {
	t.Helper()
	if _, err := servers.Patient(t.Context(), locks.TryLock, key, opts...); !errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("%s: %v, want ErrHeld", key, err)
	}
}
