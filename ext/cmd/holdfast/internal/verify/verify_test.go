package verify

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/check"
	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/plan"
)

func TestParseEngine(t *testing.T) {
	for text, want := range map[string]int{"redis": 1, "redis:5": 5, "etcd:3": 3, "file": 1} {
		if _, n, err := parseEngine(text); err != nil || n != want {
			t.Errorf("%s: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "redis:", "redis:4", "redis:x", "file:3", "abacus"} {
		if _, _, err := parseEngine(text); !errors.Is(err, ErrEngine) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSuffers(t *testing.T) {
	at := func(text string) *target {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return &target{url: u, engine: &engine{}}
	}
	if all, err := at("redis://h").suffers(nil); err != nil || !slices.Contains(all, plan.DropReply) {
		t.Errorf("redis: %v, %v", all, err)
	}
	for _, text := range []string{"file:///d", "sqlite:f.db", "rediss://h"} {
		all, err := at(text).suffers(nil)
		if err != nil || slices.ContainsFunc(all, plan.Nemesis.Network) || !slices.Contains(all, plan.Kill) {
			t.Errorf("%s: %v, %v", text, all, err)
		}
		if _, err := at(text).suffers([]plan.Nemesis{plan.Kill, plan.Slow}); !errors.Is(err, ErrNemesis) {
			t.Errorf("%s: slow: %v", text, err)
		}
	}
}

func TestReportErr(t *testing.T) {
	r := &Report{Violations: map[check.Promise]int{check.Exclusive: 0}}
	if err := r.Err(); err != nil {
		t.Error(err)
	}
	r.Invalid = "too few"
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "nothing is proved: too few") {
		t.Error(err)
	}
	r.Violations[check.Told] = 2
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "2 times") {
		t.Error(err)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil || !strings.Contains(out.String(), "2 BROKEN") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A run has to have met somebody at work.
func TestReportLacks(t *testing.T) {
	r := &Report{Grants: fewest, Nemeses: []Nemesis{{Name: "kill", Faults: 2, Hits: 1}}}
	if lacks := r.lacks(); lacks != "" {
		t.Error(lacks)
	}
	r.Nemeses = append(r.Nemeses, Nemesis{Name: "pause", Faults: 2})
	if lacks := r.lacks(); !strings.Contains(lacks, "pause") {
		t.Error(lacks)
	}
	if lacks := (&Report{Grants: fewest - 1}).lacks(); !strings.Contains(lacks, "99") {
		t.Error(lacks)
	}
}
