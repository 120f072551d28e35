package check

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/driver"
)

// A story is a history that is written down by hand. Times are milliseconds.
type story struct {
	events []history.Event
	faults int
}

func (s *story) add(worker int, at int64, e history.Event) {
	e.Worker, e.Life, e.Client, e.At = worker, 1, 1, at*ms
	if e.Op == 0 {
		e.Op = 1
	}
	if e.Key == "" {
		e.Key = "k"
	}
	e.Until, e.Since = e.Until*ms, e.Since*ms
	s.events = append(s.events, e)
}

const ms = int64(time.Millisecond)

// lock tells of a lock, up to when it is given back; 0 for never.
func (s *story) lock(worker, op int, asked, got, until, unlocked int64, token uint64) {
	s.terms(worker, op, asked, got, until, unlocked, token, driver.MaxWeight, driver.MaxWeight)
}

func (s *story) terms(worker, op int, asked, got, until, unlocked int64, token uint64, weight, limit int64) {
	s.add(worker, asked, history.Event{Kind: history.Asked, Op: op, Weight: weight, Limit: limit})
	s.add(worker, got, history.Event{Kind: history.Got, Op: op, Token: token, Until: until})
	if unlocked > 0 {
		s.add(worker, unlocked, history.Event{Kind: history.Held, Op: op, Until: until})
		s.add(worker, unlocked, history.Event{Kind: history.Unlocked, Op: op})
		s.add(worker, unlocked+1, history.Event{Kind: history.Freed, Op: op})
	}
}

// fault tells of one, of a worker or else of a server.
func (s *story) fault(worker int, nemesis string, from, to int64) {
	s.faults++
	s.add(worker, from, history.Event{Kind: history.Fault, Op: s.faults, Mode: nemesis})
	s.add(worker, to, history.Event{Kind: history.Heal, Op: s.faults})
}

// ordinary is a store with a line, for a TTL of a second.
var ordinary = Store{Held: time.Second, Place: 2 * time.Second, Line: true}

// judge runs all checks of a history.
func (s *story) judge() (all []Violation) {
	r := Of(s.events)
	stuck := r.Progress(ordinary, 5*time.Second, 0)
	return slices.Concat(r.Exclusion(false), r.Belief(), r.Losses(), r.Tokens(ordinary.Place), r.Succession(), r.Fence(context.Background()), stuck, r.Order(ordinary), r.Once(), r.Left(nil))
}

// wants fails unless the checks find these promises broken, and no others.
func (s *story) wants(t *testing.T, want ...Promise) {
	t.Helper()
	all := s.judge()
	for _, v := range all {
		if !slices.Contains(want, v.Check) {
			t.Errorf("%s: %s", v.Check, v.Text)
		}
	}
	for _, p := range want {
		if !slices.ContainsFunc(all, func(v Violation) bool { return v.Check == p }) {
			t.Errorf("%s is not found broken", p)
		}
	}
}

func TestOneAfterTheOther(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 10, 5)
	s.lock(2, 1, 2, 11, 1011, 20, 6)
	s.lock(1, 2, 12, 21, 1021, 30, 9)
	s.wants(t)
}

func TestTwoHolders(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 10, 5)
	s.lock(2, 1, 2, 8, 1008, 20, 6)
	s.wants(t, Exclusive, Told)
}

// A process that is stopped, or killed, leaves its lease in the store.
func TestGrantBeforeTheDeadline(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 900, 1900, 950, 6)
	s.wants(t, Exclusive)
}

func TestGrantAfterTheDeadline(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 1002, 2002, 1010, 6)
	s.wants(t)
}

// A holder that has renewed keeps the key for longer.
func TestGrantBeforeTheRenewedDeadline(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.add(1, 700, history.Event{Kind: history.Held, Until: 1600})
	s.lock(2, 1, 2, 1100, 2002, 1110, 6)
	s.wants(t, Exclusive)
}

func TestFreedByDeath(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.add(1, 20, history.Event{Kind: history.Died, Since: 10, Note: Killed})
	s.lock(2, 1, 2, 15, 1015, 30, 6)
	r := Of(s.events)
	if len(r.Exclusion(true)) > 0 || len(r.Exclusion(false)) != 1 {
		t.Error("the death of a holder counts where it should not, or not where it should")
	}
}

// A holder that asks its lock after the next grant hears that it is lost.
func TestBelievesTooLong(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 1100, 2100, 1300, 6)
	s.add(1, 1200, history.Event{Kind: history.Held, Until: 1001})
	s.add(1, 1210, history.Event{Kind: history.Lost})
	s.wants(t, Told)
}

func TestToldTooLate(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 1100, 2100, 1900, 6)
	s.add(1, 1800, history.Event{Kind: history.Lost})
	s.wants(t, Told)
}

// Nobody can be told while it does not run.
func TestToldAfterAPause(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 1100, 2100, 1900, 6)
	s.add(1, 1800, history.Event{Kind: history.Stall, Since: 500})
	s.add(1, 1801, history.Event{Kind: history.Lost})
	s.add(1, 1900, history.Event{Kind: history.Bye})
	s.wants(t)
}

// A pause before the next grant is no reason for being told late after it.
func TestToldLateAfterAnEarlierPause(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 1100, 2100, 1900, 6)
	s.add(1, 1000, history.Event{Kind: history.Stall, Since: 100})
	s.add(1, 1801, history.Event{Kind: history.Lost})
	s.add(1, 1900, history.Event{Kind: history.Bye})
	s.wants(t, Told)
}

// Nor is it told anything from when it is to be killed, which may take long.
func TestKilledSlowly(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.lock(2, 1, 2, 1100, 2100, 1900, 6)
	s.add(1, 1800, history.Event{Kind: history.Died, Since: 500, Note: Killed})
	s.wants(t)
}

// A process that is stopped between the grant and its first look at it may see it
// when another has come and gone.
func TestStoppedAtTheGrant(t *testing.T) {
	var s story
	s.add(1, 0, history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight})
	s.lock(2, 1, 2, 1100, 2100, 1900, 6)
	s.add(1, 1500, history.Event{Kind: history.Got, No: true})
	s.wants(t)
}

// A lock is not lost for nothing.
func TestLostForNothing(t *testing.T) {
	kept := func(ttl time.Duration, harmed int, more ...history.Event) bool {
		var s story
		s.lock(1, 1, 0, 1, 20_000, 0, 5)
		s.add(1, 20_000, history.Event{Kind: history.Lost})
		s.add(harmed, 5000, history.Event{Kind: history.Fault, Mode: "drop-reply"})
		s.add(harmed, 9000, history.Event{Kind: history.Heal})
		for _, e := range more {
			s.add(1, e.At, e)
		}
		return len(Of(s.events).Kept(ttl, 10*time.Second)) == 0
	}
	if kept(20*time.Second, 1) {
		t.Error("a lock was lost long after the fault")
	}
	if !kept(30*time.Second, 1) || kept(30*time.Second, 2) {
		t.Error("a fault counts for the worker that it harms")
	}
	if !kept(19*time.Second, 1) {
		t.Error("with a short TTL nobody can tell")
	}
	if !kept(20*time.Second, 1, history.Event{At: 16_000, Kind: history.Stall, Since: 13_000}, history.Event{At: 20_001, Kind: history.Bye}) {
		t.Error("the process did not run")
	}
}

func TestTokenGoesBack(t *testing.T) {
	for _, token := range []uint64{5, 4} {
		var s story
		s.lock(1, 1, 0, 1, 1001, 10, 5)
		s.lock(2, 1, 11, 12, 1011, 20, token)
		s.wants(t, Growing)
	}
}

// Of two that were asked for at the same time, the first to hold has the smaller token.
func TestTokensOfOneMoment(t *testing.T) {
	for _, weight := range []int64{1, driver.MaxWeight} {
		for token, want := range map[uint64][]Promise{5: {Growing}, 6: {Growing}, 7: nil} {
			var s story
			s.lock(1, 1, 0, 10, 1010, 20, 6)
			s.terms(2, 1, 1, 30, 1030, 40, token, weight, driver.MaxWeight)
			s.wants(t, want...)
		}
	}
}

// Readers do not exclude each other, and need not get their answers in order.
func TestTokensOfReadersAtOneMoment(t *testing.T) {
	var s story
	s.terms(1, 1, 0, 10, 1010, 20, 6, 1, driver.MaxWeight)
	s.terms(2, 1, 1, 30, 1030, 40, 5, 1, driver.MaxWeight)
	s.wants(t)
	s.lock(3, 1, 2, 50, 1050, 60, 6)
	s.wants(t, Growing)
}

func TestReaders(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 10, 5)
	s.terms(2, 1, 11, 12, 1012, 30, 6, 1, driver.MaxWeight)
	s.terms(3, 1, 13, 14, 1014, 30, 6, 1, driver.MaxWeight)
	s.lock(1, 2, 13, 40, 1040, 50, 7)
	s.wants(t)
	s.terms(2, 2, 51, 52, 1052, 60, 7, 1, driver.MaxWeight)
	s.wants(t, Growing)
}

func TestReaderBesideAWriter(t *testing.T) {
	var s story
	s.terms(2, 1, 0, 1, 1012, 30, 6, 1, driver.MaxWeight)
	s.lock(1, 1, 2, 20, 1040, 50, 7)
	s.wants(t, Exclusive, Told)
}

func TestSlots(t *testing.T) {
	var s story
	for worker := range 3 {
		s.terms(worker, 1, 0, 1, 1001, 30, uint64(9-worker), 1, 3)
	}
	s.terms(4, 1, 2, 31, 1040, 50, 4, 1, 3)
	s.wants(t)
	s.terms(5, 1, 2, 20, 1040, 50, 3, 1, 3)
	s.wants(t, Exclusive, Told)
}

func TestReenteredWithAnotherToken(t *testing.T) {
	var s story
	s.lock(1, 1, 0, 1, 1001, 0, 5)
	s.add(1, 2, history.Event{Kind: history.Entered, Token: 6})
	s.wants(t, Growing)
}

// A process that crashes is not one that was killed, and nothing is said against its
// locks: it may have been dead for a while when somebody took note of it.
func TestCrash(t *testing.T) {
	for _, bye := range []bool{false, true} {
		s := &story{}
		s.lock(1, 1, 0, 1, 1001, 0, 1)
		s.lock(2, 1, 0, 1002, 2002, 1100, 2)
		if bye {
			s.add(1, 10, history.Event{Kind: history.Bye})
		}
		s.add(1, 5000, history.Event{Kind: history.Died, Note: "exit status 2"})
		s.wants(t, Tidy)
	}
}

func TestLeftBehind(t *testing.T) {
	var s story
	s.add(1, 1, history.Event{Kind: history.Bye, Note: "3 goroutines more than before"})
	s.wants(t, Tidy)
	s = story{}
	s.add(1, 1, history.Event{Kind: history.Died, Note: "exit status 2"})
	s.wants(t, Tidy)
	s = story{}
	s.add(1, 1, history.Event{Kind: history.Died, Note: Killed})
	s.wants(t)
	if len(Of(nil).Left(map[string][]driver.Holder{"k": {{Owner: "worker 1.1"}}})) != 1 {
		t.Error("a claim that is left is not found")
	}
}

func TestOnce(t *testing.T) {
	var s story
	s.add(1, 1, history.Event{Kind: history.Effect, Token: 5, Value: 50})
	s.add(2, 3, history.Event{Kind: history.Effect, Token: 6, Value: 60}) // the first was killed
	s.add(2, 4, history.Event{Kind: history.Result, Value: 60})
	s.add(3, 5, history.Event{Kind: history.Result, Value: 60})
	s.add(1, 6, history.Event{Kind: history.Effect, Token: 5, Value: 51, No: true}) // it was only stopped, and is no owner any more
	s.wants(t)
	again := s
	again.add(3, 7, history.Event{Kind: history.Effect, Token: 7, Value: 70})
	again.wants(t, Single)
	s.add(3, 7, history.Event{Kind: history.Result, Value: 70})
	s.wants(t, Single)
}

// An operation on a register without an answer may count or not, also if its
// process goes on.
func TestFenceError(t *testing.T) {
	for _, value := range []uint64{0, 50} {
		var s story
		s.access(1, 1, 0, history.Writes, 5, 50, false)
		s.access(1, 10, 11, history.Looks, 6, value, false)
		s.add(3, 13, history.Event{Kind: history.Viewed, Since: 12, Value: value})
		s.add(1, 14, history.Event{Kind: history.Failed, Note: "no space"})
		s.wants(t)
		if got := Of(s.events).Failures; len(got) != 1 || got[0] != "worker 1.1: no space" {
			t.Errorf("failures: %q", got)
		}
	}
}
