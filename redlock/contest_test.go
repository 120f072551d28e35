package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/redlock"
)

// Three clients whose requests reach another node first each.
func TestSplitVotes(t *testing.T) {
	for _, wait := range []bool{false, true} {
		for _, apart := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 40 * time.Millisecond} {
			if !wait && apart > 10*time.Millisecond {
				continue // The time of a try is over before the second round.
			}
			t.Run(fmt.Sprintf("wait=%v/%v", wait, apart), func(t *testing.T) {
				bubble(t, 3, func(s *set) { s.split(wait, apart) })
			})
		}
	}
}

// Two clients are each near two nodes and far from the third, and the last client is far from all
// that the others are near to: each claim gets a node before its owner hears of it.
func TestSplitFarAway(t *testing.T) {
	bubble(t, 3, func(s *set) {
		const ms = time.Millisecond
		s.race(true, [3][3]time.Duration{{40 * ms, 1 * ms, 2 * ms}, {1 * ms, 40 * ms, 2 * ms}, {80 * ms, 80 * ms, 1 * ms}}, 10*time.Second)
	})
}

// split lets the clients ask for a key at once. Two nodes are apart, and so are one of them and a
// client. A call of the engine has TTL/6.
func (s *set) split(wait bool, apart time.Duration) {
	var delays [3][3]time.Duration
	for i := range delays {
		for j := range delays[i] {
			delays[i][j] = time.Duration((i+j)%3) * apart
		}
	}
	s.race(wait, delays, time.Second+40*apart)
}

// race lets three clients ask for a key at once. delays are from each client to each node.
func (s *set) race(wait bool, delays [3][3]time.Duration, limit time.Duration) {
	var waiters sync.WaitGroup
	var mu sync.Mutex
	var tokens []uint64
	began := time.Now()
	for i := range 3 {
		var nodes []driver.Store
		for j, n := range s.nodes {
			nodes = append(nodes, &far{n, delays[i][j]})
		}
		locks := must.Get(holdfast.New(must.Get(redlock.New(nodes, nil)), &holdfast.Options{Owner: fmt.Sprint(i), TTL: time.Second}))
		s.Cleanup(func() { s.must(locks.Close()) })
		waiters.Go(func() {
			take := locks.TryLock
			if wait {
				take = locks.Lock
			}
			lock, err := take(s.Context(), "key")
			if err != nil {
				return
			}
			mu.Lock()
			tokens = append(tokens, lock.Fence())
			mu.Unlock()
			if wait {
				s.must(lock.Unlock())
			}
		})
	}
	waiters.Wait()
	switch took := time.Since(began); {
	case !wait && len(tokens) != 1:
		s.Errorf("%d of three tries for a free key were granted, want one", len(tokens))
	case wait && len(tokens) != 3:
		s.Errorf("%d of three that wait were granted", len(tokens))
	case !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != len(tokens):
		s.Errorf("the tokens are %d, want them to grow", tokens)
	case took > limit:
		s.Errorf("it took %v to settle three split votes", took)
	}
}

// A far node is one to which calls take their time.
type far struct {
	*faulty
	delay time.Duration
}

func (f *far) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	time.Sleep(f.delay)
	return f.faulty.Acquire(ctx, a)
}

// A claim that gives way to others on a node is not kept out there, though an Acquire
// of it was not answered: the node may be needed for its majority soon.
func TestGivesWayAndComesBack(t *testing.T) {
	bubble(t, 3, func(s *set) {
		waiter, first, second := s.ask(), s.ask(), s.ask()
		waiter.Wait = true
		for driver.PublicID(waiter.ID) < max(driver.PublicID(first.ID), driver.PublicID(second.ID)) {
			waiter.ID = s.ask().ID // so that it loses against the others
		}
		for i, a := range []driver.Ask{first, second} {
			_, err := s.nodes[i+1].store().Acquire(s.Context(), a)
			s.must(err)
		}
		store := s.client()
		s.nodes[0].set(mute)
		s.refused(store, waiter)
		s.nodes[0].set(nil)
		s.refused(store, waiter)
		if calls := s.nodes[0].seen(); !slices.Contains(calls, "release") {
			s.Fatalf("the node was asked to %v, want it to give way", calls)
		}
		s.nodes[2].set(down)
		s.nodes[1].store().Release(s.Context(), []driver.Release{{Claim: first.Claim}})
		g := s.granted(store, waiter)
		if g.Fence == 0 {
			s.Error("the grant has no token")
		}
		s.nodes[2].set(nil)
		s.nodes[2].store().Release(s.Context(), []driver.Release{{Claim: second.Claim}})
		s.released(store, waiter.Claim)
		time.Sleep(2 * time.Second)
		s.empty()
	})
}

// A reader joins another reader on two of four nodes, and stands behind a writer on the
// remaining two. No claim can win the nodes while the first reader holds.
func TestContestEndsInTime(t *testing.T) {
	bubble(t, 4, func(s *set) {
		store := s.client()
		first, writer, second := s.reader(), s.ask(), s.reader()
		s.granted(store, first)
		synctest.Wait() // The last node has granted it, too.
		writer.Wait, second.Wait = true, true
		for _, n := range s.nodes[:2] {
			_, err := n.store().Acquire(s.Context(), writer)
			s.must(err)
		}
		for limit := time.Millisecond; limit < 200*time.Millisecond; limit *= 2 {
			ctx, cancel := context.WithTimeout(s.Context(), limit)
			g, err := store.Acquire(ctx, second)
			cancel()
			if err != nil || g.Holder.ID != driver.PublicID(first.ID) {
				s.Errorf("within %v: answered %+v, %v; want it refused because of the first reader", limit, g, err)
			}
		}
	})
}
