package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/redlock"
)

// ahead lets a node give larger tokens than the others.
func (s *set) ahead(node int, by uint64) {
	a := s.ask()
	a.Key, a.Fence = "not "+a.ID, uint64(time.Now().UnixMicro())+by
	if g, err := s.nodes[node].store().Acquire(s.Context(), a); !g.OK || err != nil {
		s.Fatal(g, err)
	}
}

// An uncontended lock takes one round, though the nodes' clocks differ, and time
// passes until a request arrives: no node is asked to raise a token.
func TestOneRound(t *testing.T) {
	bubble(t, 5, func(s *set) {
		stores := []*redlock.Store{s.client(), s.client()}
		for i, n := range s.nodes {
			n.set(n.fast(time.Duration(i)*15*time.Millisecond, time.Duration(1+i)*time.Millisecond))
		}
		var last uint64
		for i := range 10 {
			a := s.ask()
			g := s.granted(stores[i%2], a)
			time.Sleep(time.Second) // until the nodes that were not waited for have answered
			s.released(stores[i%2], a.Claim)
			time.Sleep(time.Second)
			for j, n := range s.nodes {
				if got := n.seen(); !slices.Equal(got, []string{"acquire", "release"}) {
					s.Errorf("lock %d: node %d was asked to %v, want one acquire and one release", i+1, j+1, got)
				}
			}
			if g.Fence <= last {
				s.Errorf("token %d after %d", g.Fence, last)
			}
			last = g.Fence
		}
	})
}

// fast lets the node's clock be ahead, and calls take their time to arrive.
func (f *faulty) fast(ahead, delay time.Duration) fault {
	return func(ctx context.Context, do func()) error {
		return slow(delay)(ctx, func() {
			f.tick(uint64(time.Now().Add(ahead).UnixMicro()))
			do()
		})
	}
}

// tick lets the node give no token up to this one.
func (f *faulty) tick(token uint64) {
	c := driver.Claim{
		Key: "tick", ID: fmt.Sprint("tick ", token),
		Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Second,
	}
	_, _ = f.store().Acquire(context.Background(), driver.Ask{Claim: c, Span: 1, Fence: token})
	_ = f.store().Release(context.Background(), []driver.Release{{Claim: c}})
}

// Only the nodes that were counted are written to: that is variant N of the
// model.
func TestLateGrantIsNotCounted(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		s.ahead(1, 10e6) // of what the client proposes, too
		s.ahead(2, 50e6)
		s.nodes[2].set(slow(40 * time.Millisecond))
		a := s.ask()
		g := s.granted(store, a)
		time.Sleep(time.Second)
		for i, want := range [][]string{{"acquire", "raise"}, {"acquire"}, {"acquire"}} {
			if got := s.nodes[i].seen(); !slices.Equal(got, want) {
				s.Errorf("node %d was asked to %v, want %v", i+1, got, want)
			}
		}
		for i, n := range s.nodes[:2] {
			hs, _ := n.store().Holders(s.Context(), "key")
			if len(hs) != 1 || hs[0].Fence != g.Fence {
				s.Errorf("node %d shows %+v, want token %d", i+1, hs, g.Fence)
			}
		}
		again := s.granted(store, a)
		if again.Fence != g.Fence {
			s.Errorf("asking again gave token %d, the first time it was %d", again.Fence, g.Fence)
		}
	})
}

// A second Acquire of a held claim keeps its token, even if a node with a larger token, not
// counted the first time, answers before a node that was counted.
func TestAskingAgainKeepsTheToken(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		s.ahead(2, 50e6)
		s.nodes[2].set(slow(40 * time.Millisecond))
		a := s.ask()
		g := s.granted(store, a)
		time.Sleep(time.Second)
		s.nodes[1].set(slow(40 * time.Millisecond))
		s.nodes[2].set(nil)
		again := s.granted(store, a)
		if again.Fence != g.Fence {
			s.Errorf("asking again gave token %d, the first time it was %d", again.Fence, g.Fence)
		}
		s.nodes[1].set(hung)
		if more := s.granted(store, a); more.Fence <= g.Fence {
			s.Errorf("token %d from nodes of which one has given more than %d", more.Fence, g.Fence)
		}
	})
}

// A held claim keeps its token beside the first read lock of its client after a restart.
func TestReadersDoNotRaiseOthers(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		s.released(store, s.acquired(store).Claim)
		for _, n := range s.nodes {
			n.restart()
		}
		time.Sleep(16 * time.Second)
		held := s.acquired(store)
		g := s.granted(store, held)
		reader := s.ask()
		reader.Key, reader.Weight = "other", 1
		s.granted(store, reader)
		if again := s.granted(store, held); again.Fence != g.Fence {
			s.Errorf("asking again gave token %d, the first time it was %d", again.Fence, g.Fence)
		}
	})
}

// acquired returns a new claim that is granted.
func (s *set) acquired(store *redlock.Store) driver.Ask {
	s.Helper()
	a := s.ask()
	s.granted(store, a)
	return a
}

// Readers of several clients share a token, on nodes that have run for long, and on nodes
// that have restarted and count.
func TestReadersShareAToken(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		bubble(t, 3, func(s *set) {
			stores := []*redlock.Store{s.client(), s.client(), s.client()}
			if restarts {
				for _, store := range stores {
					s.released(store, s.acquired(store).Claim)
				}
				for _, n := range s.nodes {
					n.restart()
				}
				time.Sleep(16 * time.Second)
			}
			var first uint64
			for i, store := range stores {
				a := s.ask()
				a.Weight = 1
				switch g := s.granted(store, a); {
				case i == 0:
					first = g.Fence
				case g.Fence != first:
					s.Errorf("reader %d has token %d, the first has %d", i+1, g.Fence, first)
				}
			}
		})
	}
}

// A node whose clock is days ahead does not draw the others after it.
func TestFarTokenIsNotCounted(t *testing.T) {
	bubble(t, 3, func(s *set) {
		s.ahead(0, driver.MaxLead)
		s.ahead(0, 2*driver.MaxLead) // the node goes on from where it is
		before := uint64(time.Now().UnixMicro())
		g := s.granted(s.client(), s.ask())
		if g.Fence > before+driver.MaxLead/2 {
			s.Errorf("the token is %d, that of the node whose clock is wrong", g.Fence)
		}
	})
}

// Tokens are of the client's clock, and grow though that is set back.
func TestClock(t *testing.T) {
	bubble(t, 3, func(s *set) {
		var ahead time.Duration
		opts := &redlock.Options{Clock: func() time.Time { return time.Now().Add(ahead) }}
		wrong, right := s.clientWith(opts), s.client()
		var last uint64
		for i, by := range []time.Duration{time.Hour, -time.Hour, 0} {
			ahead = by
			for _, store := range []*redlock.Store{wrong, right} {
				a := s.ask()
				g := s.granted(store, a)
				s.released(store, a.Claim)
				if g.Fence <= last {
					s.Errorf("%v ahead: token %d after %d", by, g.Fence, last)
				}
				last = g.Fence
			}
			if lead := time.Until(time.UnixMicro(int64(last))); i == 0 && lead < time.Hour {
				s.Errorf("tokens are %v ahead, want an hour", lead)
			}
		}
	})
}

// For every fault of messages and nodes, except nodes that forget: the token of a grant is
// larger than every token known before the request, no token is given twice, and no two
// claims hold the key at once.
func TestTokensGrow(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 2 // one with three nodes, one with five
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, 3+2*int(seed%2), func(s *set) { s.storm(rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// storm lets clients lock one key while everything goes wrong.
func (s *set) storm(rng *rand.Rand) {
	var mu sync.Mutex // of all below
	random := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	s.faults(random)
	highest, grants, holder := uint64(0), 0, ""
	var clients sync.WaitGroup
	for range 4 {
		store := s.client()
		clients.Go(func() {
			for range 60 {
				mu.Lock()
				a, before := s.ask(), highest
				a.Wait, a.Span = rng.IntN(3) > 0, 1+rng.IntN(4)
				mu.Unlock()
				if g, ok := s.insist(store, a); ok {
					mu.Lock()
					if g.Fence <= before || g.Fence <= highest {
						s.Errorf("token %d was given after %d", g.Fence, highest)
					}
					if holder != "" {
						s.Errorf("%s was granted while %s held", a.ID, holder)
					}
					highest, holder = g.Fence+uint64(g.Span)-1, a.ID
					grants++
					mu.Unlock()
					time.Sleep(time.Duration(random(5)) * time.Millisecond)
					mu.Lock()
					holder = ""
					mu.Unlock()
				}
				s.settle(store, a.Claim)
			}
		})
	}
	clients.Wait()
	if grants < 50 {
		s.Errorf("only %d claims were granted, too few to tell anything", grants)
	}
	for _, n := range s.nodes {
		n.set(nil)
	}
	time.Sleep(15 * time.Second)
	s.empty()
}

// faults lets messages come late or not at all, now and then.
func (s *set) faults(random func(int) int) {
	for _, n := range s.nodes {
		n.set(func(ctx context.Context, do func()) error {
			late := time.Duration(random(300)) * time.Millisecond
			faults := []fault{down, mute, slow(late), tardy(late), hung}
			if i := random(40); i < len(faults) {
				return faults[i](ctx, do)
			}
			return slow(time.Duration(random(3000))*time.Microsecond)(ctx, do)
		})
	}
}

// insist asks as the engine does, for two seconds.
func (s *set) insist(store *redlock.Store, a driver.Ask) (driver.Grant, bool) {
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		sent := time.Now()
		g, err := store.Acquire(ctx, a)
		cancel()
		switch {
		case err == nil && g.OK:
			return g, time.Since(sent) < g.TTL/2
		case err == nil && !a.Wait:
			return g, false
		}
	}
	return driver.Grant{}, false
}

// settle releases until that is answered.
func (s *set) settle(store *redlock.Store, c driver.Claim) {
	for range 100 {
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		errs := store.Release(ctx, []driver.Release{{Claim: c, Late: true}})
		cancel()
		if errs == nil || errors.Is(errs[0], driver.ErrLost) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.Errorf("a release was not answered")
}
