//go:build unix

package demo

import (
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	c := small(t)
	c.Servers, c.Stock, c.Buyers = 1, 1, 1 // the sale is TestSale's
	// A server that is frozen in a renewal keeps a file of the store locked. The first renewal comes
	// after a third of the TTL.
	c.Pause, c.TTL = true, 5*time.Second
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	if len(r.Scenes) != 2 || r.Scenes[0].Fenced || !r.Scenes[1].Fenced {
		t.Fatalf("played %+v, want a scene without the fence and one with it", r.Scenes)
	}
	for _, s := range r.Scenes {
		t.Log(s.Verdict)
		if s.Stale == 0 || s.Token <= s.Stale {
			t.Errorf("token %d came after token %d, want a larger one", s.Token, s.Stale)
		}
		if s.Lost == "" {
			t.Error("the server that was frozen has not been told that its lock is lost")
		}
		if s.Refused != s.Fenced {
			t.Errorf("fence %v, and the stale write was refused: %v", s.Fenced, s.Refused)
		}
		if want := map[bool]int{false: 2, true: 1}[s.Fenced]; s.Sold != want {
			t.Errorf("fence %v: sold %d of 1, want %d", s.Fenced, s.Sold, want)
		}
		checkOrder(t, s)
	}
}

// checkOrder: the second server has sold before the first goes on.
func checkOrder(t *testing.T, s Scene) {
	t.Helper()
	if len(s.Moments) != 8 {
		t.Fatalf("the timeline has %d moments, want 8: %+v", len(s.Moments), s.Moments)
	}
	first, second := s.Moments[0].PID, s.Moments[2].PID
	if first == second {
		t.Errorf("both servers are process %d", first)
	}
	for i, pid := range []int{first, first, second, second, second, first, first, first} {
		m := s.Moments[i]
		if m.PID != pid || i > 0 && m.Seconds < s.Moments[i-1].Seconds {
			t.Errorf("moment %d is out of order: %+v", i, m)
		}
	}
	if s.Moments[4].Text != "has sold the item" {
		t.Errorf("the second server %s, want that it has sold the item", s.Moments[4].Text)
	}
}
