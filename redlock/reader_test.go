package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/redlock"
)

func (s *set) reader() driver.Ask {
	a := s.ask()
	a.Weight = 1
	return a
}

// A reader that waits joins the first reader on one node, before another reader raises the
// token there, and on a second node later. It gets the raised token.
func TestTokenOfAReaderThatWaited(t *testing.T) {
	bubble(t, 3, func(s *set) {
		first, waiter, other, writer := s.reader(), s.reader(), s.reader(), s.ask()
		waiter.Wait, writer.Wait = true, true
		a, b, c := s.client(), s.client(), s.client()
		s.nodes[2].set(down)
		low := s.granted(a, first).Fence
		if g, err := s.nodes[1].store().Acquire(s.Context(), writer); err != nil || g.OK {
			s.Fatal(g, err)
		}
		s.refused(b, waiter)
		s.nodes[2].set(nil)
		high := s.granted(c, other).Fence
		s.released(c, other.Claim)
		s.refused(c, s.ask())
		s.must(errors.Join(s.nodes[1].store().Release(s.Context(), []driver.Release{{Claim: writer.Claim}})...))
		if low >= high {
			s.Fatalf("the first reader has token %d, the other %d, want a larger one", low, high)
		}
		if got := s.granted(b, waiter).Fence; got < high {
			s.Errorf("token %d after %d, want no smaller one", got, high)
		}
	})
}

// A node grants a reader. Before the answer arrives, another reader raises the token there,
// and the reader asks again. The answer is older than the raise, and does not count.
func TestAnswerFromBeforeARaise(t *testing.T) {
	bubble(t, 3, func(s *set) {
		first, slow, other := s.reader(), s.reader(), s.reader()
		a, b, c := s.client(), s.client(), s.client()
		s.nodes[2].set(down)
		low := s.granted(a, first).Fence

		s.nodes[0].set(tardy(300 * time.Millisecond))
		ctx, cancel := context.WithTimeout(s.Context(), 10*time.Millisecond)
		defer cancel()
		if g, err := b.Acquire(ctx, slow); err == nil {
			s.Fatalf("granted %+v by a single node", g)
		}

		s.nodes[0].set(nil)
		s.nodes[1].set(down)
		s.nodes[2].set(nil)
		high := s.granted(c, other).Fence
		if low >= high {
			s.Fatalf("the first reader has token %d, the other %d, want a larger one", low, high)
		}

		s.nodes[1].set(nil)
		s.nodes[2].set(down)
		if got := s.granted(b, slow).Fence; got < high {
			s.Errorf("token %d after %d, want no smaller one", got, high)
		}
	})
}

// For every order and loss of messages: a reader gets no token below a token known before
// the request, and its token is above the tokens of every earlier writer.
func TestTokensOfReadersGrow(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 2
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, 3+2*int(seed%2), func(s *set) { s.stormOfReaders(rand.New(rand.NewPCG(seed, 2))) })
		})
	}
}

// stormOfReaders lets clients read under one lock, and seldom write, while everything goes
// wrong.
func (s *set) stormOfReaders(rng *rand.Rand) {
	var mu sync.Mutex // of all below
	random := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return rng.IntN(n)
	}
	s.faults(random)
	highest, written, grants := uint64(0), uint64(0), 0
	ask := func(store *redlock.Store, a driver.Ask) bool {
		ctx, cancel := context.WithTimeout(s.Context(), time.Duration(1+random(1000))*time.Millisecond)
		defer cancel()
		mu.Lock()
		before, least := highest, written+1
		mu.Unlock()
		if !a.Shared() {
			least = before + 1
		}
		g, err := store.Acquire(ctx, a)
		if err != nil || !g.OK || g.TTL < a.TTL/2 {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if least = max(least, before); g.Fence < least {
			s.Errorf("%s got token %d, want at least %d", a.ID, g.Fence, least)
		}
		highest = max(highest, g.Fence)
		if !a.Shared() {
			written = max(written, g.Fence)
		}
		grants++
		return true
	}
	var clients sync.WaitGroup
	for range 5 {
		store := s.client()
		clients.Go(func() {
			for range 60 {
				mu.Lock()
				a := s.ask()
				a.Wait = rng.IntN(4) > 0
				if rng.IntN(8) > 0 {
					a.Weight = 1
				}
				mu.Unlock()
				held := false
				for range 20 {
					if held = ask(store, a); held || !a.Wait {
						break
					}
					time.Sleep(time.Duration(random(20)) * time.Millisecond)
				}
				if held {
					time.Sleep(time.Duration(random(10)) * time.Millisecond)
				}
				if held && a.Shared() && random(3) == 0 {
					ask(store, a)
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
