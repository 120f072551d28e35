package leases

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// TestClockGoesBack sets the clock of the server back by more than a lease has left. It
// ends no lease, and tokens count on. MariaDB aborts.
func TestClockGoesBack(t *testing.T) {
	t.Parallel()
	clock := servers.StartClock(t)
	at := create(t, servers.StartPostgres(clock, postgres.nosync).URL())
	a, b := open(t, at), open(t, at)
	first, second := exclusive("key", "first"), exclusive("key", "second")
	acquire := func(s store, c driver.Ask, want bool) driver.Grant {
		t.Helper()
		g, err := s.Acquire(t.Context(), c)
		succeed(t, err)
		if g.OK != want {
			t.Fatalf("%s was answered %+v, want a grant: %v", c.ID, g, want)
		}
		return g
	}
	earlier := acquire(a, first, true)
	clock.Step(-time.Hour)
	acquire(b, second, false)
	for _, err := range a.Renew(t.Context(), asks.Renewals(first)) {
		succeed(t, err)
	}
	acquire(b, second, false)
	for _, err := range a.Release(t.Context(), asks.Releases(first)) {
		succeed(t, err)
	}
	if later := acquire(b, second, true); later.Fence <= earlier.Fence {
		t.Errorf("token %d came after %d", later.Fence, earlier.Fence)
	}
}
