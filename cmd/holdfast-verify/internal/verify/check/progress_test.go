package check

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/driver"
)

func TestStuck(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 10, 5)
	s.lock(2, 1, 2, 12_000, 13_000, 12_500, 6)
	s.wants(t, Lively)
}

// A dead holder keeps its key for a TTL, and no longer, whoever else is killed.
func TestStuckBehindADeadHolder(t *testing.T) {
	for got, want := range map[int64][]Promise{5000: nil, 9000: {Lively}} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 0, 5)
		s.fault(1, "kill", 500, 900)
		s.add(1, 600, history.Event{Kind: history.Died, Note: Killed})
		s.lock(2, 1, 2, got, got+1000, got+10, 6)
		s.fault(3, "kill", 3000, 4000)
		s.fault(3, "pause", 5000, 8000)
		s.wants(t, want...)
	}
}

// A fault is a reason for its own worker, and for those behind it in the queue.
func TestStuckAfterAFault(t *testing.T) {
	for _, test := range []struct {
		asked, refused int64 // by the worker that is harmed
		worker         int
		want           []Promise
	}{
		{2, 4000, 3, nil},                  // it waited in the queue before the other
		{2, 1500, 3, nil},                  // it was just leaving that
		{2, 500, 3, []Promise{Lively}},     // it had left long before
		{1500, 9000, 3, []Promise{Lively}}, // it came later
		{2, 500, 2, nil},                   // it harms who waits
		{2, 500, -1, nil},                  // it harms a server
	} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 10, 5)
		s.add(3, test.asked, history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
		s.add(3, test.refused, history.Event{Kind: history.Refused})
		s.lock(2, 1, 3, 10_000, 12_000, 10_001, 8)
		s.fault(test.worker, "partition", 2000, 5000)
		s.wants(t, test.want...)
	}
}

// If a store counts the time of a claim from when a waiter first sees the claim, a request may be
// the first to see remains until somebody has acquired the key since the fault.
func TestStuckBehindUnseenRemains(t *testing.T) {
	for _, test := range []struct {
		between     bool // somebody has acquired the key
		seen        bool // the store counts so
		asked, wait int64
		want        int
	}{
		{false, false, 20_000, 6000, 1},
		{false, true, 20_000, 6000, 0},
		{false, true, 20_000, 15_000, 1},
		{true, true, 20_000, 6000, 1},
		{true, true, 7000, 6000, 0}, // it has waited beside the first
	} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 0, 5)
		s.add(1, 501, history.Event{Kind: history.Died, Since: 500, Note: Killed})
		s.fault(1, "kill", 500, 900)
		if test.between {
			s.lock(3, 1, 6000, 8000, 9000, 8001, 6)
		}
		s.lock(2, 1, test.asked, test.asked+test.wait, test.asked+test.wait+1000, test.asked+test.wait+1, 7)
		store := Store{Held: 2 * time.Second, Place: 7 * time.Second, Line: true, Seen: test.seen}
		if all := Of(s.events).Progress(store, 5*time.Second, 0); len(all) != test.want {
			t.Errorf("%+v: %v", test, all)
		}
	}
}

// With slots, no grant shows that remains have gone. A process that has acquired a slot since the
// fault has seen the remains.
func TestStuckBehindSeenRemainsOfSlots(t *testing.T) {
	for worker, want := range map[int]int{2: 1, 3: 0} {
		var s story
		s.terms(1, 1, 0, 1, 1001, 0, 5, 1, 3)
		s.add(1, 501, history.Event{Kind: history.Died, Since: 500, Note: Killed})
		s.fault(1, "kill", 500, 900)
		s.terms(2, 1, 6000, 8000, 9000, 8001, 6, 1, 3)
		s.terms(worker, 2, 20_000, 26_000, 27_000, 26_001, 7, 1, 3)
		store := Store{Held: 2 * time.Second, Place: 7 * time.Second, Line: true, Seen: true}
		if all := Of(s.events).Progress(store, 5*time.Second, 0); len(all) != want {
			t.Errorf("worker %d: %v, want %d", worker, all, want)
		}
	}
}

// A new process waits behind the claims of its killed predecessor, if it asks for the same
// key.
func TestStuckAfterAKill(t *testing.T) {
	for asked, want := range map[int64][]Promise{2: nil, 0: {Lively}} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 10, 5)
		if asked > 0 {
			s.add(2, asked, history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
		}
		s.add(2, 2000, history.Event{Kind: history.Died, Since: 1999, Note: Killed})
		s.fault(2, "kill", 1998, 2500)
		s.add(2, 2600, history.Event{Kind: history.Asked, Op: 1, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
		s.add(2, 8500, history.Event{Kind: history.Got, Op: 1, Token: 6, Until: 9500})
		for i := range s.events {
			if e := &s.events[i]; e.Worker == 2 && e.At > 2500*ms && e.Kind != history.Heal {
				e.Life = 2
			}
		}
		s.wants(t, want...)
	}
}

// Where there is no line, whatever comes later may be in the way as well.
func TestStuckWithoutALine(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 10, 5)
	s.add(3, 1500, history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
	s.lock(2, 1, 3, 10_000, 12_000, 10_001, 8)
	s.fault(3, "partition", 2000, 5000)
	s.wants(t, Lively)
	if all := Of(s.events).Progress(Store{Held: time.Second, Place: 2 * time.Second}, 5*time.Second, 0); len(all) > 0 {
		t.Error(all)
	}
}

// A waiter may have the place of a claim that gave up, but not the place of a granted
// claim.
func TestStuckBehindAnInheritedPlace(t *testing.T) {
	for got, want := range map[int64][]Promise{0: nil, 2500: {Lively}} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 10, 5)
		s.add(3, 2, history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
		s.add(3, 2400, history.Event{Kind: history.Refused})
		if got > 0 {
			s.lock(3, 2, 2400, got, got+1000, got+1, 6)
		}
		s.add(3, 2400, history.Event{Kind: history.Asked, Op: 3, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
		s.fault(3, "partition", 3600, 8000)
		s.lock(2, 1, 3, 11_000, 12_000, 11_001, 8)
		s.wants(t, want...)
	}
}

// A claim granted while a clock was ahead stands for longer by as much.
func TestStuckAfterAClock(t *testing.T) {
	for step, want := range map[int64][]Promise{1000: {Lively}, -3000: nil} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 10, 5)
		s.lock(2, 1, 2, 12_000, 13_000, 12_500, 6)
		s.fault(-1, "clock", 500, 3000)
		s.events[len(s.events)-2].Step = step * ms
		s.wants(t, want...)
	}
}

// On a machine that is very busy, nobody runs who could take the key.
func TestStuckWhileNobodyRuns(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 10, 5)
	s.lock(2, 1, 2, 30_000, 31_000, 30_500, 6)
	s.add(1, 30_600, history.Event{Kind: history.Bye})
	s.add(2, 30_600, history.Event{Kind: history.Bye})
	s.add(2, 15_000, history.Event{Kind: history.Stall, Since: 3000})
	s.wants(t, Lively)
	s.add(1, 28_000, history.Event{Kind: history.Stall, Since: 14_000})
	s.wants(t)
	s.fault(1, "pause", 15_000, 27_000)
	s.wants(t, Lively)
}

func TestWaitsForADeadHolder(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 2000, 3000, 2500, 6)
	s.wants(t)
}

// A store that serves nobody for a while is slow, and one that serves the others is
// not.
func TestStuckWhileNobodyGetsAnything(t *testing.T) {
	for at, want := range map[int64]int{8000: 0, 12_000: 1} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 10, 5)
		s.lock(2, 1, 2, at, at+1000, at+10, 6)
		if all := Of(s.events).Progress(ordinary, 5*time.Second, 10*time.Second); len(all) != want {
			t.Errorf("after %d ms it finds %v", at, all)
		}
		for other := int64(500); other < at; other += 500 {
			s.add(3, other, history.Event{Kind: history.Asked, Op: int(other), Key: "other"})
			s.add(3, other, history.Event{Kind: history.Got, Op: int(other), Key: "other"})
		}
		if all := Of(s.events).Progress(ordinary, 5*time.Second, 10*time.Second); len(all) != 1 {
			t.Errorf("after %d ms, while others get theirs, it finds %v", at, all)
		}
	}
}

// passed tells of a worker that waits while another has the key once every step, and
// returns the story.
func passed(by int, step int64) *story {
	var s story
	s.lock(1, 1, 0, 1, 1001, 10, 5)
	s.add(2, 2, history.Event{Kind: history.Asked, Mode: "exclusive", Weight: driver.MaxWeight, Limit: driver.MaxWeight})
	at := int64(20)
	for i := range 20 {
		s.add(1+2*(i%by), at-9, history.Event{Kind: history.Asked, Op: 2 + i, Mode: "exclusive", Weight: driver.MaxWeight, Limit: driver.MaxWeight})
		s.add(1+2*(i%by), at, history.Event{Kind: history.Got, Op: 2 + i, Token: uint64(at), Until: at + 5000})
		s.add(1+2*(i%by), at+step-10, history.Event{Kind: history.Held, Op: 2 + i, Until: at + 5000})
		s.add(1+2*(i%by), at+step-10, history.Event{Kind: history.Unlocked, Op: 2 + i})
		s.add(1+2*(i%by), at+step-9, history.Event{Kind: history.Freed, Op: 2 + i})
		at += step
	}
	s.lock(2, 2, at, at+1, at+1000, at+10, uint64(at+1))
	return &s
}

func TestPassedOver(t *testing.T) {
	passed(2, 1000).wants(t, Lively) // ten times each
	passed(8, 1000).wants(t)         // three times at most
	passed(1, 100).wants(t)          // within moments
	if all := Of(passed(2, 1000).events).Order(Store{}); len(all) > 0 {
		t.Errorf("there is no line: %v", all)
	}
}

// A harmed waiter may lose its place.
func TestPassedOverInTrouble(t *testing.T) {
	s := passed(2, 1000)
	s.fault(2, "partition", 5000, 11_000)
	s.wants(t)
	s = passed(2, 1000)
	s.fault(3, "partition", 5000, 11_000)
	s.wants(t, Lively)
	s = passed(2, 1000)
	for at := int64(5000); at < 20_000; at += 5000 {
		s.add(2, at, history.Event{Kind: history.Stall, Since: at - 500})
	}
	s.add(2, 20_021, history.Event{Kind: history.Bye})
	s.wants(t)
}

// In a process the queue is separate: who is not the first there is not in that of the
// store.
func TestPassedOverBehindAnother(t *testing.T) {
	s := passed(2, 1000)
	e := history.Event{Worker: 2, Life: 1, Client: 2, Op: 1, Key: "k", Mode: "many", Weight: driver.MaxWeight, Limit: driver.MaxWeight, At: 1 * ms, Kind: history.Asked}
	s.events = append(s.events, e)
	s.wants(t) // it waits to the end
	e.Kind, e.At = history.Refused, 14_000*ms
	s.events = append(s.events, e)
	s.wants(t)
	s.events[len(s.events)-1].At = 2000 * ms
	s.wants(t, Lively)
}

// Waits with an excuse are not judged, whatever the excuse.
func TestWaits(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 9000, 5)
	s.add(2, 1000, history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
	s.add(2, 11_000, history.Event{Kind: history.Refused})
	s.add(3, 1000, history.Event{Kind: history.Asked, Mode: "try", Weight: driver.MaxWeight, Limit: driver.MaxWeight})
	s.add(3, 3000, history.Event{Kind: history.Refused})
	waits := func(want time.Duration) {
		t.Helper()
		if got := Of(s.events).Waits(ordinary, 0); got.Judged != want || got.All != 10*time.Second+time.Millisecond {
			t.Errorf("%v, want %v to be judged", got, want)
		}
	}
	waits(10*time.Second + time.Millisecond)
	s.fault(2, "pause", 1500, 2000)
	waits(7500*time.Millisecond + time.Millisecond)
	s.fault(-1, "restart", 3000, 3500)
	waits(6*time.Second + time.Millisecond)
	s.add(2, 8000, history.Event{Kind: history.Stall, Since: 7000})
	s.add(1, 8000, history.Event{Kind: history.Stall, Since: 7500})
	s.add(2, 12_000, history.Event{Kind: history.Bye})
	waits(5*time.Second + time.Millisecond)
}

// A run in which a key that nobody can have might never be found has not checked that.
func TestWaitsAreEnough(t *testing.T) {
	for _, c := range []struct {
		waits  Waits
		length time.Duration
		want   bool
	}{
		{Waits{}, time.Minute, false},
		{Waits{100 * time.Second, 0}, time.Minute, false},
		{Waits{100 * time.Second, 5 * time.Second}, time.Minute, false},
		{Waits{100 * time.Second, 7 * time.Second}, time.Minute, true},
		{Waits{100 * time.Second, 40 * time.Second}, 10 * time.Second, false},
		{Waits{100 * time.Second, 41 * time.Second}, 10 * time.Second, true},
	} {
		if got := c.waits.enough(c.length, 4*time.Second); got != c.want {
			t.Errorf("%+v in %v: %v", c.waits, c.length, got)
		}
	}
}
