package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/redlock"
)

// A node that hangs costs no time, and goroutines do not pile up in front of it. When the
// node answers again, it hears the missed requests.
func TestHungNode(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		held := s.ask()
		held.Key = "held"
		s.granted(store, held)
		synctest.Wait()
		s.nodes[1].set(hung)
		began := time.Now()
		for range 100 {
			a := s.ask()
			s.granted(store, a)
			s.must(s.renewal(store, a.Claim))
			s.released(store, a.Claim)
		}
		// It gets a millisecond to answer each call before it is silent.
		if took := time.Since(began); took > time.Second/2+time.Millisecond {
			s.Errorf("a hundred locks took %v beside a node that hangs", took)
		}
		s.released(store, held.Claim)
		time.Sleep(2 * time.Second) // until the calls to it have run into their limit
		s.nodes[1].seen()
		s.nodes[1].set(nil)
		time.Sleep(5 * time.Second)
		if hs, _ := s.nodes[1].store().Holders(s.Context(), "held"); len(hs) > 0 {
			s.Errorf("the node that hung still has %+v", hs)
		}
		s.empty()
	})
}

// A node that is silent gets one call at a time.
func TestSilentNode(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		waiting := make(chan struct{}, 1000)
		s.nodes[0].set(func(ctx context.Context, _ func()) error {
			waiting <- struct{}{}
			return hung(ctx, nil)
		})
		s.granted(store, s.ask())
		time.Sleep(time.Second)
		for range len(waiting) {
			<-waiting
		}
		for i := range 50 {
			a := s.ask()
			a.Key = fmt.Sprint(i)
			s.granted(store, a)
		}
		synctest.Wait()
		if n := len(waiting); n != 1 {
			s.Errorf("%d calls wait for a node that is silent, want 1", n)
		}
		s.nodes[0].set(nil)
		time.Sleep(time.Second)
		s.nodes[0].seen()
		for i := range 3 {
			a := s.ask()
			a.Key = fmt.Sprint("again", i)
			s.granted(store, a)
			synctest.Wait()
		}
		if n := len(s.nodes[0].seen()); n != 3 {
			s.Errorf("the node that answers again was asked %d times, want 3", n)
		}
	})
}

// An Acquire that comes when the Store is being closed is in nobody's way: what
// an earlier one of the same claim has left going on comes to its end.
func TestAcquireWhileClosing(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		s.ahead(1, 10e6)
		s.nodes[2].set(down)
		calls := 0
		s.nodes[0].set(func(ctx context.Context, do func()) error {
			if calls++; calls == 1 {
				do()
				return nil
			}
			return slow(50*time.Millisecond)(ctx, do) // the raise
		})
		a := s.ask()
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Millisecond)
		defer cancel()
		if g, err := store.Acquire(ctx, a); err == nil {
			s.Fatalf("cut off, it was answered %+v", g)
		}
		closed := make(chan error)
		go func() { closed <- store.Close() }()
		synctest.Wait()
		if g, err := store.Acquire(s.Context(), a); err == nil {
			s.Errorf("a store that is being closed said %+v", g)
		}
		s.must(<-closed)
	})
}

func TestDeadNodes(t *testing.T) {
	bubble(t, 5, func(s *set) {
		store := s.client()
		s.nodes[0].set(down)
		s.nodes[3].set(down)
		a := s.ask()
		s.granted(store, a)
		s.refused(store, s.ask())
		s.must(s.renewal(store, a.Claim))
		s.released(store, a.Claim)

		a = s.ask()
		s.granted(store, a)
		s.nodes[4].set(down)
		_, err := store.Acquire(s.Context(), s.ask())
		for _, err := range []error{err, s.renewal(store, a.Claim)} {
			if !errors.Is(err, errDown) || errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrInvalid) {
				s.Errorf("with 3 of 5 nodes down: %v, want the nodes' errors", err)
			}
			for _, part := range []string{"2 of 5 nodes answered, 3 needed", "node 1: connection refused", "node 4", "node 5"} {
				if err == nil || !strings.Contains(err.Error(), part) {
					s.Errorf("with 3 of 5 nodes down: %v, want it to say %q", err, part)
				}
			}
		}
		s.nodes[4].set(nil)
		s.must(s.renewal(store, a.Claim))
	})
}

// Answers that are lost leave nothing behind, and asking again finds the claim.
func TestLostAnswers(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		for lost := range 3 {
			for _, n := range s.nodes[:lost] {
				n.set(mute)
			}
			a := s.ask()
			g, err := store.Acquire(s.Context(), a)
			if g.OK != (lost < 2) || (err != nil) != (lost == 2) {
				s.Fatalf("with %d answers lost: %+v, %v", lost, g, err)
			}
			for _, n := range s.nodes {
				n.set(nil)
			}
			again := s.granted(store, a)
			if g.OK && again.Fence != g.Fence {
				s.Errorf("asking again gave token %d, the first time it was %d", again.Fence, g.Fence)
			}
			s.released(store, a.Claim)
			synctest.Wait()
			s.empty()
		}
	})
}

// A try that is refused gives back what it got, also where that comes late.
func TestTryLeavesNothing(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store, other := s.client(), s.client()
		holder := s.ask()
		s.nodes[2].set(down)
		s.granted(store, holder)
		synctest.Wait()
		s.nodes[2].set(slow(30 * time.Millisecond))
		s.refused(other, s.ask())
		time.Sleep(time.Second)
		if hs, _ := s.nodes[2].store().Holders(s.Context(), "key"); len(hs) > 0 {
			s.Errorf("a refused try still has %+v on node 3", hs)
		}
		s.nodes[2].set(nil)
		s.refused(other, s.ask())
		synctest.Wait()
		s.released(store, holder.Claim)
		synctest.Wait()
		s.empty()
	})
}

// A release does not overtake the Acquire that a node has not answered yet.
func TestReleaseFollows(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		s.nodes[2].set(slow(40 * time.Millisecond))
		a := s.ask()
		s.granted(store, a)
		synctest.Wait()
		s.nodes[2].set(nil)
		s.released(store, a.Claim)
		time.Sleep(time.Second)
		if got := s.nodes[2].seen(); !slices.Equal(got, []string{"acquire", "release"}) {
			s.Errorf("the node that is slow was asked to %v, want the release after the acquire", got)
		}
		s.empty()
	})
}

// A release that nodes have not answered is sent again.
func TestReleaseIsRepeated(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		a := s.ask()
		s.granted(store, a)
		synctest.Wait()
		s.nodes[0].set(down)
		s.released(store, a.Claim)
		time.Sleep(3 * time.Second)
		s.nodes[0].set(nil)
		time.Sleep(2 * time.Second)
		s.empty()
	})
}

// A claim that a majority has lost is in nobody's way on the others.
func TestLostClaimIsAbandoned(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		a := s.ask()
		s.granted(store, a)
		synctest.Wait()
		for _, n := range s.nodes[:2] {
			n.restart()
		}
		if err := s.renewal(store, a.Claim); !errors.Is(err, driver.ErrLost) {
			s.Errorf("two of three nodes have forgotten the claim: %v, want ErrLost", err)
		}
		synctest.Wait()
		s.empty()
	})
}

func TestRefusesWhatItCannotKeep(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		slot, long, heavy := s.ask(), s.ask(), s.ask()
		slot.Weight, slot.Limit = 1, 2
		heavy.Weight = driver.MaxWeight / 2
		long.TTL = 16 * time.Second
		if _, err := redlock.New([]driver.Store{s.nodes[0], s.nodes[1]}, nil); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "want 3 or more") {
			s.Errorf("two nodes: %v", err)
		}
		for _, test := range []struct {
			ask  driver.Ask
			says string
		}{
			{slot, "no slots"},
			{heavy, "no slots"},
			{long, "quarantine"},
		} {
			g, err := store.Acquire(s.Context(), test.ask)
			if g.OK || !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), test.says) {
				s.Errorf("%+v: %+v, %v; want ErrInvalid that says %q", test.ask, g, err, test.says)
			}
		}
		a := s.ask()
		s.granted(store, a)
		kept := driver.Renewal{Claim: a.Claim}
		tooLong := kept
		tooLong.TTL = 16 * time.Second
		errs := store.Renew(s.Context(), []driver.Renewal{kept, tooLong, kept})
		if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], driver.ErrInvalid) || errs[2] != nil {
			s.Errorf("a renewal for longer than the quarantine among others: %v", errs)
		}
	})
}

func TestCheck(t *testing.T) {
	bubble(t, 4, func(s *set) {
		warnings, err := s.client().Check(s.Context())
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "4 nodes") {
			s.Errorf("Check of four nodes returned %q, %v", warnings, err)
		}
	})
}

// unprepared says that it can keep no claims.
type unprepared struct{ driver.Store }

func (unprepared) Check(context.Context) ([]string, error) {
	return nil, fmt.Errorf("%w: no table", driver.ErrInvalid)
}

// hungCheck does not answer.
type hungCheck struct{ driver.Store }

func (hungCheck) Check(ctx context.Context) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCheckAsksForAMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad, hung := memlock.New(), unprepared{memlock.New()}, hungCheck{memlock.New()}
		check := func(nodes ...driver.Store) ([]string, error) {
			s := must.Get(redlock.New(nodes, nil))
			defer s.Close()
			began := time.Now()
			defer func() {
				if took := time.Since(began); took > time.Second {
					t.Errorf("it took %v", took)
				}
			}()
			return s.Check(t.Context())
		}
		if warnings, err := check(good, good, bad); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "no table") {
			t.Errorf("one of three is not prepared: %q, %v; want a warning", warnings, err)
		}
		if _, err := check(good, bad, bad); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("two of three are not prepared: %v, want ErrInvalid", err)
		}
		if warnings, err := check(good, good, hung); err != nil || len(warnings) > 0 {
			t.Errorf("one of three does not answer: %q, %v", warnings, err)
		}
	})
}

// A claim in the queue that gets a node after its call has returned looks again:
// asleep it would be in the way of all others.
func TestLateNodeWakes(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store, other := s.client(), s.client()
		s.nodes[2].set(down)
		s.granted(other, s.ask())
		synctest.Wait()
		s.nodes[2].set(nil)
		a := s.ask()
		a.Wait = true
		wakes := make(chan driver.Grant, 10)
		stop, err := store.Watch(s.Context(), a.Claim, func(g driver.Grant) { wakes <- g })
		s.must(err)
		defer stop()
		s.nodes[2].set(slow(40 * time.Millisecond))
		s.refused(store, a)
		if n := len(wakes); n != 0 {
			s.Errorf("woken %d times before anything has changed", n)
		}
		select {
		case g := <-wakes:
			if g.OK {
				s.Errorf("one node of three is no grant: %+v", g)
			}
		case <-time.After(time.Second):
			s.Error("node 3 has let the claim in, and nobody was told")
		}
	})
}

// slowClose takes a second to close.
type slowClose struct{ driver.Store }

func (s slowClose) Close() error {
	time.Sleep(time.Second)
	return s.Store.Close()
}

func TestCloseAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []driver.Store
		for range 5 {
			nodes = append(nodes, slowClose{memlock.New()})
		}
		s := must.Get(redlock.New(nodes, &redlock.Options{Quarantine: -1}))
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("Close of %d nodes took %v, want the second of one", len(nodes), took)
		}
	})
}
