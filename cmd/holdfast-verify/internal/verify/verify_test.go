package verify

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
)

func TestUnknownEngine(t *testing.T) {
	for _, name := range []string{"", "redis:", "redis:4", "redis:x", "file:3", "abacus"} {
		if _, _, err := Faults(name); !errors.Is(err, ErrEngine) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, name := range Engines() {
		can, stands, err := Faults(name)
		if err != nil || !slices.Contains(stands, plan.Kill) || slices.ContainsFunc(stands, func(n plan.Nemesis) bool { return !slices.Contains(can, n) }) {
			t.Errorf("%s can meet with %v, and stands %v, %v", name, can, stands, err)
		}
	}
	can, stands, err := Faults("redis:2")
	if err != nil || !slices.Contains(can, plan.Failover) || slices.Contains(stands, plan.Failover) || slices.Contains(can, plan.Restart) {
		t.Errorf("redis:2 can meet with %v, and stands %v, %v", can, stands, err)
	}
	for _, name := range []string{"redis-sentinel", "redis-sentinel?wait=2", "redis-cluster"} {
		can, stands, err := Faults(name)
		if err != nil || !slices.Contains(can, plan.SwitchOver) || slices.ContainsFunc(can, plan.Nemesis.Network) || slices.Contains(stands, plan.KillStore) {
			t.Errorf("%s can meet with %v, and stands %v, %v", name, can, stands, err)
		}
	}
	if _, stands, err = Faults("postgres:2"); err != nil || !slices.Contains(stands, plan.Failover) {
		t.Errorf("postgres:2 stands %v, %v", stands, err)
	}
	if can, _, err = Faults("file?mode=0660"); err != nil || slices.Contains(can, plan.WorkerClock) {
		t.Errorf("with parameters files can meet with %v, %v", can, err)
	}
	if _, stands, err = Faults("postgres?mode=session"); err != nil || slices.Contains(stands, plan.Restart) {
		t.Errorf("with parameters postgres stands %v, %v", stands, err)
	}
	if _, stands, err = Faults("postgres-session"); err != nil || slices.Contains(stands, plan.Restart) || !slices.Contains(stands, plan.PauseStore) {
		t.Errorf("postgres-session stands %v, %v", stands, err)
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
	if _, err := at("redis://h").suffers([]plan.Nemesis{plan.KillStore}); !errors.Is(err, ErrNemesis) {
		t.Errorf("a server of a user is killed: %v", err)
	}
	if all, err := at("redis://h").suffers(nil); err != nil || !slices.Contains(all, plan.DropReply) {
		t.Errorf("redis: %v, %v", all, err)
	}
	for _, text := range []string{"file:///d", "sqlite:f.db", "rediss://h", "postgres://h", "mysql://localhost/db?tls=true"} {
		all, err := at(text).suffers(nil)
		if err != nil || slices.ContainsFunc(all, plan.Nemesis.Network) || !slices.Contains(all, plan.Kill) {
			t.Errorf("%s: %v, %v", text, all, err)
		}
		_, err = at(text).suffers([]plan.Nemesis{plan.Kill, plan.Slow})
		if !errors.Is(err, ErrNemesis) || !strings.Contains(err.Error(), obstacle(at(text).url)) {
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
	if err := r.Err(); !errors.Is(err, ErrUngranted) || errors.Is(err, ErrUnproved) {
		t.Errorf("without a grant: %v", err)
	}
	r.Grants = 1
	if err := r.Err(); !errors.Is(err, ErrUnproved) || !strings.Contains(err.Error(), "nothing is proved: too few") {
		t.Errorf("with a grant: %v", err)
	}
	r.Violations[check.Told] = 2
	if err := r.Err(); err == nil || errors.Is(err, ErrUnproved) || !strings.Contains(err.Error(), "2 times") {
		t.Error(err)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil || !strings.Contains(out.String(), "2 BROKEN") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// A run has to have met somebody at work.
func TestReportLacks(t *testing.T) {
	r := &Report{Grants: 100, Nemeses: []Nemesis{{Name: "kill", Faults: 2, Hits: 1}}}
	if lacks := r.lacks(100, true); lacks != "" {
		t.Error(lacks)
	}
	r.Nemeses = append(r.Nemeses, Nemesis{Name: "slow", Faults: 2})
	if lacks := r.lacks(100, true); !strings.Contains(lacks, "no slow held back") || !strings.Contains(r.faults(), "2 slow (which met nobody") {
		t.Errorf("%s of %s", lacks, r.faults())
	}
	r.Nemeses[1] = Nemesis{Name: "pause", Faults: 2}
	if lacks := r.lacks(100, true); !strings.Contains(lacks, "pause") {
		t.Error(lacks)
	}
	if lacks := r.lacks(100, false); lacks != "" {
		t.Error(lacks)
	}
	r.Nemeses = r.Nemeses[1:]
	if lacks := r.lacks(100, false); lacks == "" {
		t.Error("a run without a fault is valid")
	}
	if lacks := (&Report{Grants: 99}).lacks(100, true); !strings.Contains(lacks, "99") {
		t.Error(lacks)
	}
}

// On a slow machine a fault may come due when the run is over, and its victim gone.
func TestNoHarmAfterTheEnd(t *testing.T) {
	length, end := context.WithCancel(t.Context())
	end()
	c := &crew{places: []*place{{}}}
	for _, n := range []plan.Nemesis{plan.Kill, plan.Pause, plan.Restart} {
		if err := c.harm(t.Context(), length, 1, plan.Fault{Nemesis: n}); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	c.dismiss()
}

// An eviction has met somebody at work if the lock was held that it has taken.
func TestHits(t *testing.T) {
	h := &check.Hold{Key: "key", Asked: 10, Got: 20, Freed: 30, Refused: check.Never, Died: check.Never}
	for name, test := range map[string]struct {
		fault check.Fault
		want  bool
	}{
		"flush while it waits":     {check.Fault{Span: check.Span{From: 5, To: 15}, Nemesis: "flush", Worker: -1}, true},
		"flush before":             {check.Fault{Span: check.Span{From: 5, To: 9}, Nemesis: "flush", Worker: -1}, false},
		"evicted while it is held": {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "evict", Worker: -1, Evicted: []string{"key"}}, true},
		"evicted while it waits":   {check.Fault{Span: check.Span{From: 5, To: 15}, Nemesis: "evict", Worker: -1, Evicted: []string{"key"}}, false},
		"another is evicted":       {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "evict", Worker: -1, Evicted: []string{"key2"}}, false},
		"slow":                     {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "slow", Worker: 0, Touched: 1}, true},
		"slow, and nothing passed": {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "slow", Worker: 0}, false},
		"of a primary":             {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "restart", Worker: -1, Role: history.Primary}, true},
		"of a replica":             {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "restart", Worker: -1, Role: history.Replica}, false},
		"of a Sentinel":            {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "restart", Worker: -1, Role: history.Sentinel}, false},
		"another worker is killed": {check.Fault{Span: check.Span{From: 5, To: 25}, Nemesis: "kill", Worker: 1}, false},
	} {
		if got := hits(test.fault, h); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Registers are the run's own: if they fail, it has proved nothing.
func TestDoubt(t *testing.T) {
	s := &scene{}
	s.doubt(nil)
	r := &Report{Nemeses: []Nemesis{{Name: "kill", Hits: 1}}}
	if got := s.invalid(r); got != "" {
		t.Error(got)
	}
	s.doubt([]string{"worker 1.1: no space", "worker 1.2: no space"})
	if got := s.invalid(r); !strings.Contains(got, "registers have failed 2 workers: worker 1.1: no space") {
		t.Error(got)
	}
}

// A report says of what it is, for programs and for people.
func TestOf(t *testing.T) {
	s := &scene{Config: Default(), target: &target{name: "etcd", url: &url.URL{Scheme: "etcd"}, started: true, engine: &engine{version: "etcd 3.4.23"}}}
	r := s.report()
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	if r.Build == "" || r.Server != "etcd 3.4.23" || !strings.Contains(out.String(), "\nholdfast "+r.Build+", etcd 3.4.23\n") {
		t.Errorf("of %q and %q it says:\n%s", r.Build, r.Server, &out)
	}
}
