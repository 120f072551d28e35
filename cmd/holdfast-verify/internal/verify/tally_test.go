package verify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// lockOf is a lock that was granted as soon as it was asked for.
func lockOf(worker, op int, got, freed float64) *check.Hold {
	return &check.Hold{
		Who: check.Who{Worker: worker, Life: 1, Client: 1}, Op: op, Key: "k", Weight: 1, Limit: 1, Token: uint64(op), Mode: "exclusive",
		Asked: at(got), Got: at(got), Until: at(freed + 1), Unlocked: at(freed), Freed: at(freed),
		Lost: check.Never, Refused: check.Never, Dying: check.Never, Died: check.Never,
	}
}

// Events are counted under the fault before them.
func TestTally(t *testing.T) {
	s := against(t, "redis:")
	s.Nemeses = []plan.Nemesis{plan.Pause, plan.Kill, plan.Flush}
	faults := []check.Fault{
		{Span: check.Span{From: at(10), To: at(15)}, Nemesis: "pause", Worker: 1},
		{Span: check.Span{From: at(12), To: at(12)}, Nemesis: "kill", Worker: 2},
		fault(plan.Flush, 20, 20.1),
	}
	lost := lockOf(1, 2, 9.5, 15)
	lost.Lost = at(15)
	late := lockOf(3, 4, 19, 19.5)
	late.Asked = at(16)
	run := &check.Run{Faults: faults, Holds: []*check.Hold{lockOf(3, 1, 1, 2), lost, lockOf(3, 3, 11, 11.5), late}}
	r := s.report()
	s.hold(r, []check.Violation{
		{Check: check.Exclusive, At: at(20.2), Reach: at(22)},
		{Check: check.Growing, At: at(13)},
		{Check: check.Tidy},
	}, faults)
	r.count(run)
	if r.Operations != 4 || r.Grants != 4 || r.Losses != 1 {
		t.Errorf("in all %d, %d, %d", r.Operations, r.Grants, r.Losses)
	}
	pause, kill, flush := r.Nemeses[0], r.Nemeses[1], r.Nemeses[2]
	if r.Before.Operations != 2 || r.Before.Grants != 2 || pause.Operations != 1 || kill.Operations != 1 || flush.Operations != 0 {
		t.Errorf("before %+v, pause %+v, kill %+v, flush %+v", r.Before, pause, kill, flush)
	}
	if pause.Losses != 1 || kill.Losses != 0 {
		t.Errorf("the loss of the paused worker is put down to the kill of another: %+v, %+v", pause, kill)
	}
	if flush.Waived[check.Exclusive] != 1 || kill.Violations[check.Growing] != 1 || r.Violations[check.Tidy] != 1 {
		t.Errorf("kill %+v, flush %+v, all %v", kill, flush, r.Violations)
	}
	if kill.Longest != 3 || pause.Longest != 0 {
		t.Errorf("the gap, from the deadline of the lost lock on, is put down to pause %v, kill %v", pause.Longest, kill.Longest)
	}
	if got := r.verdict(flush.Tally, check.Tidy) + r.verdict(kill.Tally, check.Tidy); got != "–ok" {
		t.Errorf("without an operation and with some: %s, want –ok", got)
	}
	r.Waits = Waits{Seconds: 30, Judged: 12.5}
	r.Unchecked = run.Unchecked(s.TTL, slack, check.Waits{}, grace)
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nemesis", "none", "pause", "1 BROKEN", "(1)", "–", "kept was not checked: with a TTL of less than 20s",
		"progress judged 12.5s of 30.0s of waiting"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if lines := len(r.table()); lines != 6 {
		t.Errorf("the table has %d lines:\n%s", lines, out.String())
	}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"kept":"with a TTL`) || !strings.Contains(string(text), `"name":"pause","faults":1,"hits":1,"operations":1`) {
		t.Errorf("%s, %v", text, err)
	}
}
