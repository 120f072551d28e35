package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// TestSessionTurnOfFrozen cuts a waiting process off while its connection has the turn. The
// turn passes to a waiter of a different process, long before the server's own wait_timeout.
func TestSessionTurnOfFrozen(t *testing.T) {
	t.Parallel()
	proxy, through := linked(t)
	opts := &holdfast.Options{TTL: sessiontest.Patience}
	holder, frozen, waiter := locker(t, server, opts), locker(t, through, opts), locker(t, server, opts)
	const key = "turn of a frozen process"
	name := newSession(t, config(t, server)).server.Name(key)
	used := func() string { return shared.Must("SELECT COALESCE(IS_USED_LOCK('" + turn(name) + "'), 0)") }

	held := sessiontest.Locked(t, holder, key)
	ctx := sessiontest.Bounded(t)
	wait, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = frozen.Lock(wait, key) // The test ends the wait.
	}()
	var first string
	servers.Until(t, "a turn", func() bool { first = used(); return first != "0" })
	proxy.Blackhole(true)
	granted := make(chan error, 1)
	go func() {
		l, err := servers.Patient(ctx, waiter.Lock, key)
		if err == nil {
			err = unlocking.Release(l.Unlock)
		}
		granted <- err
	}()
	servers.Until(t, "the turn of the waiter", func() bool { now := used(); return now != "0" && now != first })
	if err := unlocking.Release(held.Unlock); err != nil {
		t.Error(err)
	}
	if err := <-granted; err != nil {
		t.Error(err)
	}
	proxy.Blackhole(false)
	stop()
	<-ended
}

// TestSessionTurnOfItself releases a key while a waiter of the same process has the turn. If no
// other process waits, the process does not back off. Otherwise it backs off for milliseconds.
func TestSessionTurnOfItself(t *testing.T) {
	t.Parallel()
	s := newSession(t, config(t, shared.Database(t).URL())) // No other test locks the rows.
	const key = "turn of its own"
	name := s.server.Name(key)
	ctx := t.Context()
	ask := func(id string) driver.Ask {
		return driver.Ask{Claim: driver.Claim{Key: key, ID: id, Owner: "test", TTL: sessiontest.Patience, Weight: driver.MaxWeight, Limit: driver.MaxWeight}}
	}
	waiter, began := ask("waiter"), time.Now()
	stop, err := s.Watch(ctx, waiter.Claim, func(driver.Grant) {})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	servers.Until(t, "a turn", func() bool {
		return shared.Must("SELECT IS_USED_LOCK('"+turn(name)+"') IS NOT NULL") == "1"
	})
	rounds := 0
	var asked time.Time // when the last request began
	acquired := func() bool {
		if rounds++; time.Since(began) > 2*sessiontest.Patience {
			t.Fatalf("no break of the process, or no end of a break, in %d rounds", rounds)
		}
		ctx, cancel := context.WithTimeout(t.Context(), sessiontest.Patience)
		defer cancel()
		holder := ask(fmt.Sprint("holder ", rounds))
		asked = time.Now()
		g, err := s.Acquire(ctx, holder)
		if err == nil && g.OK {
			err = errors.Join(s.Release(ctx, asks.Releases(holder))...)
		}
		if err != nil {
			t.Fatalf("round %d: %v", rounds, err)
		}
		return g.OK
	}
	// After a stall of seconds, the server may keep the turn for a connection that the process has
	// closed, so a refusal may be right then.
	servers.Until(t, "20 requests without a refusal, as no other process waits", func() bool {
		for range 20 {
			if acquired() {
				continue
			}
			if took := time.Since(began); took < time.Second {
				t.Fatalf("a refusal %v after the test began, and no other process waits", took)
			}
			return false
		}
		return true
	})
	other := must.Get(s.server.dial(ctx, "", nil))
	defer other.Close()
	must.Get(other.ExecContext(ctx, "DO GET_LOCK('"+mark(name)+"', 0)"))
	// A break begins before the release returns. A request that begins after the break is not
	// refused, however slow the machine is. A stall of the turn may bring a longer break.
	servers.Until(t, fmt.Sprint("three breaks of about ", briefPause), func() bool {
		for range 3 {
			released := time.Now()
			for acquired() { // until the process leaves the key to the other process
				released = time.Now()
			}
			refused := asked
			for !acquired() {
				refused = asked
			}
			if refused.Sub(released) >= backoff.Pause/4 {
				return false
			}
		}
		return true
	})
}
