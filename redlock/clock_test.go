package redlock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// TestSpansKeepPaceWithTheClock proposes more tokens than the clock has microseconds, for an
// hour: the tokens stay near the clock, and a pause brings the spans back.
func TestSpansKeepPaceWithTheClock(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := newClock(15 * time.Second)
	c.now = func() time.Time { return now }
	most := mostLead + mostLead/slack + driver.MaxSpan*time.Microsecond
	last, spans := uint64(0), 0
	for range 3_600_000 {
		now = now.Add(50 * time.Microsecond)
		token, some := c.next(0, driver.MaxSpan)
		if token <= last {
			t.Fatalf("token %d after %d", token, last)
		}
		last = token + uint64(some) - 1
		if ahead := time.UnixMicro(int64(last)).Sub(now); ahead > most {
			t.Fatalf("tokens are %v ahead of the clock, want %v at most", ahead, most)
		}
		if some > 1 {
			spans++
		}
	}
	if spans == 0 {
		t.Error("no proposal had a span")
	}
	now = now.Add(mostLead)
	if _, some := c.next(0, driver.MaxSpan); some != driver.MaxSpan {
		t.Errorf("after a pause, a proposal has %d tokens", some)
	}
}

// TestSpansBesideAFasterClock has a client whose clock is behind another's by less than the
// slack: its proposals have spans all the same.
func TestSpansBesideAFasterClock(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := newClock(0)
	c.now = func() time.Time { return now }
	c.see(uint64(now.Add(mostLead+mostLead/slack/2).UnixMicro()), 1)
	if _, some := c.next(0, driver.MaxSpan); some != driver.MaxSpan {
		t.Errorf("a proposal has %d tokens, want %d", some, driver.MaxSpan)
	}
}
