// Package conditionaltest has tests that stores on services with conditional writes share.
package conditionaltest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// Ask returns a request for an exclusive claim.
func Ask(key, id string) driver.Ask {
	return driver.Ask{Claim: driver.Claim{Key: key, ID: id, TTL: time.Minute, Weight: driver.MaxWeight, Limit: driver.MaxWeight}}
}

// Open opens a store, or returns why the service refuses.
func Open(t testing.TB, at string) (driver.Store, error) {
	return servers.Answer(t.Context(), func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
}

// Renew renews a claim.
func Renew(ctx context.Context, s driver.Store, a driver.Ask) error {
	return errors.Join(s.Renew(ctx, []driver.Renewal{{Claim: a.Claim}})...)
}

// Granted acquires a claim.
func Granted(t *testing.T, s driver.Store, a driver.Ask) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), a)
	if err != nil || !g.OK {
		t.Fatalf("%+v, %v; want a grant", g, err)
	}
	return g
}

// Keys returns the keys that a store shows.
func Keys(t *testing.T, s driver.Store) (keys []string) {
	t.Helper()
	for key, err := range s.(driver.Inspector).Keys(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// A Server is a server that tests kill and pause.
type Server interface {
	Kill()
	Restart()
	Pause()
	Resume()
}

// Faults has locks stand while the server is killed, and while it is paused. Both stores are of the
// server.
func Faults(t *testing.T, server Server, s, other driver.Store) {
	holder := Ask("key", "holder")
	g := Granted(t, s, holder)
	for name, fault := range map[string]struct{ begin, end func() }{
		"kill":  {server.Kill, server.Restart},
		"pause": {server.Pause, server.Resume},
	} {
		fault.begin()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := Renew(ctx, s, holder); err == nil || errors.Is(err, driver.ErrLost) {
			t.Errorf("%s: renewed during the fault: %v", name, err)
		}
		cancel()
		fault.end()
		servers.Insist(t, func(ctx context.Context) (struct{}, error) { return struct{}{}, Renew(ctx, s, holder) })
		refusal := servers.Insist(t, func(ctx context.Context) (driver.Grant, error) { return other.Acquire(ctx, Ask("key", "other")) })
		if refusal.OK || refusal.Holder.Fence != g.Fence {
			t.Errorf("%s: another process is answered %+v", name, refusal)
		}
	}
}

// Removed has remove delete the record of "key" by hand: the lock ends, and the next token is larger.
func Removed(t *testing.T, s, other driver.Store, remove func()) {
	holder := Ask("key", "holder")
	g := Granted(t, s, holder)
	remove()
	if err := Renew(t.Context(), s, holder); !errors.Is(err, driver.ErrLost) {
		t.Errorf("renewed: %v, want ErrLost", err)
	}
	if next := Granted(t, other, Ask("key", "other")); next.Fence <= g.Fence {
		t.Errorf("token %d after %d", next.Fence, g.Fence)
	}
}

// Apart has two stores with different prefixes. The first shows its own keys alone.
func Apart(t *testing.T, s, other driver.Store, key string) {
	Granted(t, s, Ask(key, "holder"))
	Granted(t, other, Ask("c", "holder"))
	if keys := Keys(t, s); len(keys) != 1 || keys[0] != key {
		t.Errorf("the keys are %q, want %q alone", keys, key)
	}
}
