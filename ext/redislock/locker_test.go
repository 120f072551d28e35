package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/redislock"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

func openStore(t testing.TB, url string) *redislock.Store {
	t.Helper()
	store, err := driver.Open(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store.(*redislock.Store)
}

// openLocker returns a Locker with a store of its own, as another process has.
func openLocker(t testing.TB, url string) *holdfast.Locker {
	t.Helper()
	return newLocker(t, openStore(t, url), nil)
}

func newLocker(t testing.TB, store driver.Store, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	locks := holdfast.New(store, opts)
	t.Cleanup(func() { locks.Close() })
	return locks
}

func exclusive(key, id string) driver.Claim {
	return driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
}

// until returns when check holds.
func until(t testing.TB, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !check(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited for %v: %s", patience, what)
		}
	}
}

// awaitLine returns when so many stand in line for a key.
func awaitLine(t testing.TB, locks *holdfast.Locker, key string, n int) {
	t.Helper()
	until(t, "those who wait to stand in line", func() bool {
		holders, err := locks.Holders(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		waiting := 0
		for _, h := range holders {
			if h.Waiting {
				waiting++
			}
		}
		return waiting == n
	})
}
