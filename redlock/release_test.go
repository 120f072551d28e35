package redlock_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

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

// A release returns when a majority has answered, and nobody waits for the slower
// nodes. The next claim waits for them there: it is held by all nodes.
func TestReleaseReturnsAtTheMajority(t *testing.T) {
	bubble(t, 3, func(s *set) {
		store := s.client()
		a := s.ask()
		s.granted(store, a)
		synctest.Wait()
		s.nodes[2].set(slow(40 * time.Millisecond))
		began := time.Now()
		s.must(s.renewal(store, a.Claim))
		if took := time.Since(began); took > 0 {
			s.Errorf("a renewal took %v beside a slow node, want no time", took)
		}
		time.Sleep(time.Second)
		s.nodes[2].seen()
		began = time.Now()
		s.released(store, a.Claim)
		next := s.ask()
		s.granted(store, next)
		if took := time.Since(began); took > 0 {
			s.Errorf("a release and the next lock took %v beside a slow node, want no time", took)
		}
		time.Sleep(time.Second)
		if got := s.nodes[2].seen(); !slices.Equal(got, []string{"release", "acquire"}) {
			s.Errorf("the slow node was asked to %v", got)
		}
		for i, n := range s.nodes {
			if hs, _ := n.store().Holders(s.Context(), "key"); len(hs) != 1 || hs[0].ID != driver.PublicID(next.ID) {
				s.Errorf("node %d has %+v, want the next claim", i+1, hs)
			}
		}
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
