package check

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
)

// access tells of an operation on the fenced register; back is 0 if it has no
// answer.
func (s *story) access(worker int, call, back int64, kind history.Kind, token, value uint64, no bool) {
	s.add(worker, call, history.Event{Kind: kind, Token: token, Value: value})
	answer := map[history.Kind]history.Kind{history.Looks: history.Looked, history.Writes: history.Wrote}[kind]
	if back > 0 {
		s.add(worker, back, history.Event{Kind: answer, Token: token, Value: value, No: no})
	}
}

func TestFencedRegister(t *testing.T) {
	var s story
	s.access(1, 1, 2, history.Looks, 5, 0, false)
	s.access(1, 3, 4, history.Writes, 5, 50, false)
	s.access(2, 5, 6, history.Looks, 6, 50, false)
	s.access(1, 7, 8, history.Writes, 5, 51, true)
	s.access(2, 7, 9, history.Writes, 6, 60, false)
	s.add(3, 11, history.Event{Kind: history.Viewed, Since: 10, Value: 60})
	s.wants(t)
	s.add(3, 13, history.Event{Kind: history.Viewed, Since: 12, Value: 50})
	s.wants(t, Fenced)
}

func TestFenceLetsAnOldTokenPass(t *testing.T) {
	var s story
	s.access(2, 1, 2, history.Looks, 6, 0, false)
	s.access(1, 3, 4, history.Writes, 5, 50, false)
	s.wants(t, Fenced)
}

// Two who work for one client at once tell of what they do in any order, here of an end
// before its beginning.
func TestFenceOutOfOrder(t *testing.T) {
	var s story
	s.access(2, 1, 2, history.Looks, 6, 0, false)
	s.access(1, 10, 8, history.Looks, 5, 0, false)
	s.wants(t, Fenced)
}

// A user who interrupts a run does not wait for Porcupine.
func TestFenceIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := &Run{Accesses: []*Access{{Key: "k", Token: 2, Write: true, Return: 1}, {Key: "k", Token: 1, Write: true, Call: 2, Return: 3}}}
	if all := run.Fence(t.Context()); len(all) == 0 {
		t.Error("an old token was let pass")
	}
	if all := run.Fence(ctx); len(all) > 0 {
		t.Errorf("it has gone on to find %v", all)
	}
}

// The last write of a process that was killed may count or not.
func TestFenceUnknown(t *testing.T) {
	for _, value := range []uint64{0, 50} {
		var s story
		s.access(1, 1, 0, history.Writes, 5, 50, false)
		s.add(1, 10, history.Event{Kind: history.Died, Since: 9, Note: Killed})
		s.add(3, 12, history.Event{Kind: history.Viewed, Since: 11, Value: value})
		s.wants(t)
	}
}

// A server may do what a process has asked for when that is dead already.
func TestFenceWritesLate(t *testing.T) {
	var s story
	s.access(1, 1, 0, history.Writes, 5, 50, false)
	s.add(1, 10, history.Event{Kind: history.Died, Since: 9, Note: Killed})
	s.add(3, 12, history.Event{Kind: history.Viewed, Since: 11, Value: 0})
	s.add(3, 14, history.Event{Kind: history.Viewed, Since: 13, Value: 50})
	s.wants(t)
}

// A violation is found in every window.
func TestFenceWindows(t *testing.T) {
	var s story
	for i := range int64(3 * window) {
		s.access(1, 10*i+1, 10*i+2, history.Looks, uint64(i+1), uint64(i), false)
		s.access(1, 10*i+3, 10*i+4, history.Writes, uint64(i+1), uint64(i+1), false)
	}
	s.wants(t)
	s.add(2, 10_016, history.Event{Kind: history.Viewed, Since: 10_015, Value: 7})
	s.wants(t, Fenced)
}

func TestChain(t *testing.T) {
	good := []register.Record{{Token: 5}, {Token: 5, Value: 50}, {Token: 6}, {Token: 6, Value: 60, Seen: 50}}
	if all := Chain("k", good); len(all) > 0 {
		t.Errorf("%v", all)
	}
	lost := append(good, register.Record{Token: 7, Value: 70, Seen: 50})
	if all := Chain("k", lost); len(all) != 1 || !strings.Contains(all[0].Text, "token 7 has written over that of token 6") {
		t.Errorf("%v", all)
	}
	old := append(good, register.Record{Token: 5}, register.Record{Token: 6, Value: 61, Seen: 60})
	if all := Chain("k", old); len(all) != 1 || !strings.Contains(all[0].Text, "token 5 after token 6") {
		t.Errorf("%v", all)
	}
}

func TestHurt(t *testing.T) {
	stale, lost := Hurt([]register.Record{{Token: 5, Value: 50}, {Token: 6, Value: 60, Seen: 50}, {Token: 5, Value: 51, Seen: 50}, {Token: 6, Value: 61, Seen: 51}})
	if stale != 1 || lost != 1 {
		t.Errorf("%d stale writes and %d lost updates, want 1 and 1", stale, lost)
	}
}
