package redislock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/redislock"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

func openStore(t testing.TB, url string) *redislock.Store {
	t.Helper()
	store := opening(unhurried(url)).Open(t)
	t.Cleanup(func() { store.Close() })
	return store.(*redislock.Store)
}

// openProven starts a server and opens a store that has proved the server. After two seconds Open ends
// the proof, which may leave claims, and a later call proves the server.
func openProven(t *testing.T) (server *servers.Redis, store *redislock.Store) {
	t.Helper()
	until(t, "a proof in time", func() bool {
		server = servers.StartRedis(t)
		began := time.Now()
		store = openStore(t, server.URL())
		return time.Since(began) < 2*time.Second
	})
	return server, store
}

// unhurried lets a client wait for the greeting of a server that a busy machine does not
// run. The default is five seconds.
func unhurried(url string) string {
	sign := "?"
	if strings.Contains(url, sign) {
		sign = "&"
	}
	return url + sign + "dial_timeout=1m"
}

// openLocker returns a Locker with a store of its own, as another process has.
func openLocker(t testing.TB, url string) *holdfast.Locker {
	t.Helper()
	return newLocker(t, openStore(t, url), nil)
}

func newLocker(t testing.TB, store driver.Store, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	locks := must.Get(holdfast.New(store, opts))
	t.Cleanup(func() { locks.Close() })
	return locks
}

// unlock leaves to the background what is not answered in time.
func unlock(held interface{ Unlock() error }) error { return unlocking.Release(held.Unlock) }

// unlockAtOnce is unlock for a lock that was granted just now.
func unlockAtOnce(lock *holdfast.Lock) error { return unlocking.AtOnce(lock) }

func exclusive(key, id string) driver.Claim {
	return driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
}

// until is [servers.Until].
func until(t testing.TB, what string, check func() bool) {
	t.Helper()
	servers.Until(t, what, check)
}

// awaitLine returns when so many wait in the queue for a key.
func awaitLine(t testing.TB, locks *holdfast.Locker, key string, n int) {
	t.Helper()
	until(t, "those who wait to be in the queue", func() bool {
		holders := servers.Insist(t, func(ctx context.Context) ([]holdfast.Holder, error) { return locks.Holders(ctx, key) })
		waiting := 0
		for _, h := range holders {
			if h.Waiting {
				waiting++
			}
		}
		return waiting == n
	})
}
