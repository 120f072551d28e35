package redislock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A grant that is pushed stands for as long as it does, though the clock of the
// server was set back since its owner asked.
func TestPushAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	clock := servers.StartClock(t)
	s := openStore(t, servers.StartRedis(clock).URL())
	first := driver.Ask{Claim: exclusive("k", "first")}
	second := driver.Ask{Claim: exclusive("k", "second"), Wait: true}
	ask := func(a driver.Ask) bool {
		g, err := s.Acquire(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return g.OK
	}
	if !ask(first) {
		t.Fatal("refused a key that is free")
	}
	pushed := make(chan driver.Grant, 1)
	stop, err := s.Watch(t.Context(), second.Claim, func(g driver.Grant) {
		if g.OK {
			pushed <- g
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if ask(second) {
		t.Fatal("granted a key that is held")
	}
	clock.Step(-time.Hour)
	s.Release(t.Context(), []driver.Release{{Claim: first.Claim}})
	select {
	case g := <-pushed:
		if g.TTL < second.Alive() || g.TTL > second.TTL {
			t.Errorf("it stands for %v, want %v", g.TTL, second.Alive())
		}
	case <-time.After(patience):
		t.Fatal("nothing was pushed")
	}
}
