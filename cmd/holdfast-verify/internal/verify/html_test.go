package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

// Of too many locks those stay that are near to what was wrong, and to the faults.
func TestChoose(t *testing.T) {
	var holds []*check.Hold
	for i := range 100 {
		holds = append(holds, lockOf(1, i+1, float64(i), float64(i)+0.5))
	}
	long := lockOf(2, 1, 1, 91)
	holds = append(holds, long)
	faults := []check.Fault{{Span: check.Span{From: at(50), To: at(60)}, Nemesis: "kill"}}
	got := func(wrong []check.Violation, faults []check.Fault) (starts []int64) {
		for _, h := range choose(holds, wrong, faults, 8) {
			if h != long {
				starts = append(starts, h.Got/at(1))
			}
		}
		slices.Sort(starts)
		return starts
	}
	wrong := []check.Violation{{At: at(90)}, {}}
	for name, test := range map[string]struct {
		got  []int64
		want string
	}{
		"both":          {got(wrong, faults), "[48 49 50 51 89 90 91]"},
		"nothing wrong": {got(nil, faults), "[47 48 49 50 51 52 53]"},
		"nothing done":  {got(nil, nil), "[0 1 2 3 4 5 6]"},
	} {
		if fmt.Sprint(test.got) != test.want {
			t.Errorf("%s: %v, want %v", name, test.got, test.want)
		}
	}
	if !slices.Contains(choose(holds, wrong, faults, 2), long) {
		t.Error("the lock that was held when something went wrong is left out")
	}
}

// No check hides another, and what was waived is shown as well.
func TestShown(t *testing.T) {
	s := against(t, "redis:")
	r := s.report()
	var found []check.Violation
	for i := range int64(3 * mostShown) {
		found = append(found, check.Violation{Check: check.Exclusive, Key: "k", At: at(30) + i, Text: "two"})
		found = append(found, check.Violation{Check: check.Told, Key: "k", At: at(10.2) + i, Text: "unknowing"})
	}
	found = append(found, check.Violation{Check: check.Fenced, Key: "k", At: at(40), Text: "late", View: "a view"})
	s.hold(r, found, []check.Fault{fault(plan.Flush, 10, 10.1)})
	if len(r.Found) != mostShown+1 || len(r.Excused) != mostShown {
		t.Errorf("%d are shown, and %d that are waived", len(r.Found), len(r.Excused))
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "exclusion: k: two") != mostTold || !strings.Contains(text, "exclusion: and 55 more") || !strings.Contains(text, "fence: k: late") {
		t.Error(text)
	}
	p := r.page(&check.Run{Holds: []*check.Hold{lockOf(1, 1, 1, 45)}})
	last := p.Violations[len(p.Violations)-1]
	if len(p.Violations) != 2*mostShown+1 || !last.Waived || p.Violations[0].Waived || len(p.Views) != 1 || p.End < last.At {
		t.Errorf("%d violations, the last %+v, %d views, until %v", len(p.Violations), last, len(p.Views), p.End)
	}
}

// Effects share a lane of the page.
func TestLanes(t *testing.T) {
	s := against(t, "redis:")
	var holds []*check.Hold
	for i, key := range []string{"slots1", "once/effect2", "key0", "once/effect1", "key0"} {
		h := lockOf(1, i+1, float64(i), float64(i)+0.5)
		h.Key = key
		holds = append(holds, h)
	}
	p := s.report().page(&check.Run{Holds: holds})
	var lanes []int
	for _, h := range p.Holds {
		lanes = append(lanes, h.Key)
	}
	if fmt.Sprint(p.Keys, lanes) != "[key0 once slots1] [2 1 0 1 0]" {
		t.Errorf("lanes %v, bars in %v", p.Keys, lanes)
	}
}

// A report on a store of the user says that its servers were not harmed.
func TestSpared(t *testing.T) {
	for store, want := range map[string]string{
		"redis://h":             "restart,kill-store,pause-store",
		"postgres://h":          "restart,kill-store,pause-store",
		"etcds://h":             "restart,kill-store,pause-store",
		"zk://h":                "cut-store",
		"redlock://h":           "clock,evict,flush",
		"file:///d":             "",
		"redis://h?":            "flush",
		"memcached://h":         "evict,flush",
		"postgres:?mode=x":      "clock",
		"sqlite:///d/locks.sql": "",
	} {
		s := against(t, store)
		r := s.report()
		if got := plan.List(r.Spared); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", store, got, want)
		}
		var out strings.Builder
		if err := r.Print(&out); err != nil || strings.Contains(out.String(), "not harmed") != (want != "") {
			t.Errorf("%s: %v\n%s", store, err, out.String())
		}
	}
	s := against(t, "redis://h")
	if s.target.started = true; s.report().Spared != nil {
		t.Error("servers that the run has started are spared")
	}
}
