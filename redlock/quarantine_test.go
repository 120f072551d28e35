package redlock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/redlock"
)

// A node that has restarted without its claims does not count before those
// that it may have forgotten have run out.
func TestQuarantine(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store, other := s.client(), s.client()
		s.nodes[2].set(down)
		holder := s.ask()
		s.granted(store, holder) // on nodes 1 and 2
		s.nodes[1].restart()
		s.nodes[2].set(nil)
		began := time.Now()
		rival := s.ask()
		for time.Since(began) < holder.TTL-time.Second {
			if g, _ := other.Acquire(s.Context(), rival); g.OK {
				s.Fatalf("a second claim was granted %v after a node forgot the first", time.Since(began))
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Until(began.Add(holder.TTL)))
		s.nodes[0].set(down) // The node that remembers is gone; its claim has run out.
		_, err := other.Acquire(s.Context(), rival)
		if err == nil || !strings.Contains(err.Error(), "1 of 3 nodes answered and count, 2 needed") {
			s.Errorf("with one node down and one out: %v, want to hear that they are too few", err)
		}
		if err == nil || !strings.Contains(err.Error(), "node 2: restarted 10s ago; it counts in 5s") {
			s.Errorf("with one node down and one out: %v, want to hear which is out and for how long", err)
		}
		time.Sleep(5 * time.Second)
		s.granted(other, rival)
	})
}

// New nodes grant nothing yet. That is what everybody hears who asks: the first to
// come, whose claim they keep all the same, those whom that claim is in the way of,
// and whoever looks at the settings.
func TestNewNodesSaySo(t *testing.T) {
	bubble(t, 3, func(s *set) {
		for _, n := range s.nodes {
			n.restart()
		}
		time.Sleep(4 * time.Second)
		told := func(who string, err error) {
			s.Helper()
			if err == nil || !strings.Contains(err.Error(), "node 2: restarted 4s ago; it counts in 11s") {
				s.Errorf("%s hears %v, want which node counts when", who, err)
			}
		}
		store, other := s.client(), s.client()
		first, second := s.ask(), s.ask()
		first.Wait, second.Wait = true, true
		_, err := store.Acquire(s.Context(), first)
		told("the first", err)
		g := s.refused(other, second)
		told("the second", g.Blocked)

		locks := must.Get(holdfast.New(s.client(), nil))
		defer locks.Close()
		_, err = locks.TryLock(s.Context(), "key")
		told("a Locker", err)
		if !errors.Is(err, holdfast.ErrHeld) {
			s.Errorf("%v, want ErrHeld while a claim is in the way", err)
		}
		if _, err = locks.Lock(s.Context(), "key", holdfast.Wait(time.Nanosecond)); err == nil {
			s.Error("granted by new nodes")
		}
		told("one who has waited", err)
		warnings, err := store.Check(s.Context())
		if err != nil || len(warnings) != 1 {
			s.Fatalf("Check: %q, %v", warnings, err)
		}
		told("Check", errors.New(warnings[0]))

		time.Sleep(11 * time.Second)
		if warnings, err := store.Check(s.Context()); err != nil || len(warnings) != 0 {
			s.Errorf("Check of nodes that count: %q, %v", warnings, err)
		}
		s.granted(store, first)
		if g := s.refused(other, second); g.Blocked != nil {
			s.Errorf("refused by nodes that count: %v", g.Blocked)
		}
	})
}

// A node may grant a claim before it counts, with a token below those that it has
// forgotten. When the node counts, the claim gets a larger one. So does a reader that joins
// a reader of that time.
func TestTokenFromTheQuarantine(t *testing.T) {
	for _, unreachable := range []time.Duration{0, 10 * time.Second} {
		for _, weight := range []int64{driver.MaxWeight, 1} {
			bubble(t, 3, func(s *set) { s.lockAfterRestart(unreachable, weight) })
		}
	}
}

// lockAfterRestart acquires a lock from a node that restarts, and is reached so long after.
func (s *set) lockAfterRestart(unreachable time.Duration, weight int64) {
	const ahead = 10 * time.Second // less than nine tenths of the quarantine
	fast := s.clientWith(&redlock.Options{Clock: func() time.Time { return time.Now().Add(ahead) }})
	store := s.client()
	s.nodes[1].set(down)
	before := s.ask()
	g := s.granted(fast, before) // by nodes 1 and 3
	s.released(fast, before.Claim)
	s.nodes[1].set(nil)
	s.nodes[2].restart()
	s.nodes[0].set(down) // the one that remembers
	s.nodes[2].set(down)
	a := s.ask()
	a.Weight = weight
	for began := time.Now(); time.Since(began) < 15*time.Second; time.Sleep(time.Second) {
		if time.Since(began) >= unreachable {
			s.nodes[2].set(nil)
		}
		if g, err := store.Acquire(s.Context(), a); g.OK || err == nil {
			s.Fatalf("got %+v, %v from one node that counts", g, err)
		}
	}
	if a.Shared() {
		a.ID, store = "joins", s.client()
	}
	after := s.granted(store, a)
	if after.Fence <= g.Fence {
		s.Errorf("token %d after %d", after.Fence, g.Fence)
	}
	if lead := time.Until(time.UnixMicro(int64(after.Fence))); lead > 2*time.Second {
		s.Errorf("the token is %v ahead of all clocks: the next node that restarts may be behind it", lead)
	}
	if again := s.granted(store, a); again.Fence != after.Fence {
		s.Errorf("asking again gave token %d, the first time it was %d", again.Fence, after.Fence)
	}
}
