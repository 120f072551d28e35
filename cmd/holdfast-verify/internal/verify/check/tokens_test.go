package check

import (
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/driver"
)

// Slots that are held at once have any order; what was known for long is smaller.
func TestTokensOfSlots(t *testing.T) {
	for asked, want := range map[int64][]Promise{1500: nil, 2500: {Growing}} {
		var s story
		s.terms(1, 1, 0, 1, 1001, 30, 9, 1, 3)
		s.terms(2, 1, asked, asked+1, asked+1001, asked+10, 8, 1, 3)
		s.wants(t, want...)
	}
}

// A loss may be written down a little after whoever enters the lock has met it.
func TestReenteredAfterTheLoss(t *testing.T) {
	for lost, want := range map[int64][]Promise{10: nil, 900: {Growing}} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 0, 5)
		s.add(1, 2, history.Event{Kind: history.Entered, No: true})
		s.add(1, lost, history.Event{Kind: history.Lost})
		s.wants(t, want...)
	}
}

// A lock has a token, unless it was lost before its holder could ask for that.
func TestLockWithoutAToken(t *testing.T) {
	for _, limit := range []int64{1, 3, driver.MaxWeight} {
		var s story
		s.terms(1, 1, 0, 1, 1001, 10, 5, 1, limit)
		s.terms(2, 1, 11, 12, 1012, 20, 0, 1, limit)
		s.wants(t, Growing)
	}
	var s story
	s.add(1, 0, history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
	s.add(1, 1500, history.Event{Kind: history.Got, No: true})
	s.wants(t)
}
