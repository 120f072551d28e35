package verify

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/driver"
)

// against is a run with a store of this kind and a TTL of two seconds.
func against(t *testing.T, store string) *scene {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	return &scene{Config: Config{TTL: 2 * time.Second}, target: &target{url: u, engine: &engine{}}}
}

// at is a time of these tests, which count seconds.
func at(seconds float64) int64 { return int64(seconds * float64(time.Second)) }

func fault(n plan.Nemesis, from, to float64) check.Fault {
	return check.Fault{Span: check.Span{From: at(from), To: at(to)}, Nemesis: string(n), Worker: -1}
}

// step is a clock that was set for a while.
func step(from, to, by float64) check.Fault {
	f := fault(plan.Clock, from, to)
	f.Step = at(by)
	return f
}

// A violation that the fault cannot explain counts against the store.
func TestWaived(t *testing.T) {
	flush, kill := fault(plan.Flush, 10, 10.1), check.Fault{Span: check.Span{From: at(12), To: at(12)}, Nemesis: "kill"}
	unhealed := fault(plan.KillStore, 10, 10)
	unhealed.To = check.Never
	workerStep := step(9, 11, 6)
	workerStep.Nemesis = string(plan.WorkerClock)
	two := func(when, deadline float64) check.Violation {
		return check.Violation{Check: check.Exclusive, At: at(when), Reach: at(deadline)}
	}
	old := func(p check.Promise, when float64) check.Violation { return check.Violation{Check: p, At: at(when)} }
	for name, test := range map[string]struct {
		store     string
		violation check.Violation
		faults    []check.Fault
		by        plan.Nemesis // "" if the store has to answer for it
	}{
		"before the fault":                           {"redis:", two(9.9, 11), []check.Fault{flush}, ""},
		"the server has forgotten the lock":          {"redis:", two(10.2, 12), []check.Fault{flush, kill}, plan.Flush},
		"it has lasted for another TTL":              {"redis:", two(12, 12.05), []check.Fault{flush, kill}, plan.Flush},
		"the lock was renewed since":                 {"redis:", two(11.5, 13.2), []check.Fault{flush, kill}, ""},
		"two sessions without a deadline":            {"postgres:?mode=session", old(check.Exclusive, 11), []check.Fault{fault(plan.Restart, 10, 10.1)}, plan.Restart},
		"two sessions long after":                    {"postgres:?mode=session", old(check.Exclusive, 13), []check.Fault{fault(plan.Restart, 10, 10.1)}, ""},
		"the server is still away":                   {"memcached:", two(10.5, 12), []check.Fault{unhealed}, plan.KillStore},
		"a fault that it stands":                     {"redis:", two(10.5, 12), []check.Fault{kill, fault(plan.Restart, 10, 10.1)}, ""},
		"the last of several":                        {"redis:", two(13.5, 14), []check.Fault{flush, fault(plan.Evict, 12, 13)}, plan.Evict},
		"an effect under a lock that is forgotten":   {"redis:", old(check.Single, 10.2), []check.Fault{flush}, plan.Flush},
		"what no fault can do":                       {"redis:", old(check.Tidy, 10.2), []check.Fault{flush}, ""},
		"tokens after a flush":                       {"redis:", old(check.Growing, 10.2), []check.Fault{flush}, ""},
		"tokens after a flush of Redlock":            {"redlock:", old(check.Growing, 10.2), []check.Fault{flush}, ""},
		"tokens after a clock":                       {"redis:", old(check.Growing, 9.5), []check.Fault{step(9, 11, 6)}, ""},
		"tokens after a clock and a flush":           {"redis:", old(check.Growing, 18), []check.Fault{step(9, 11, 6), flush}, plan.Clock},
		"tokens before the flush":                    {"redis:", old(check.Growing, 9.5), []check.Fault{step(9, 11, 6), flush}, ""},
		"tokens after a clock that was set back":     {"redis:", old(check.Fenced, 11.5), []check.Fault{flush, step(11, 12, -6)}, plan.Clock},
		"the right time is past all tokens":          {"redis:", old(check.Growing, 20), []check.Fault{step(9, 11, 6), flush}, ""},
		"a worker's clock, and a node restarts":      {"redlock:", old(check.Growing, 18), []check.Fault{workerStep, fault(plan.Restart, 12, 12.1)}, plan.WorkerClock},
		"a worker's clock, and no node forgets":      {"redlock:", old(check.Growing, 18), []check.Fault{workerStep}, ""},
		"a worker's clock, and files":                {"file:", old(check.Growing, 10), []check.Fault{workerStep, fault(plan.Restart, 9.5, 9.6)}, ""},
		"a node of Redlock restarts":                 {"redlock:", old(check.Growing, 10.2), []check.Fault{fault(plan.Restart, 10, 10.1)}, ""},
		"the same of Redlock":                        {"redlock:", old(check.Fenced, 18), []check.Fault{step(9, 11, 6), flush}, plan.Clock},
		"both locks stood, and the first came first": {"redis:", check.Violation{Check: check.Growing, Given: check.Exclusive, At: at(10.2), Reach: at(12)}, []check.Fault{flush}, plan.Flush},
		"readers from before a replica took over":    {"redis:", check.Violation{Check: check.Growing, Joined: true, At: at(20), Reach: at(9)}, []check.Fault{fault(plan.StaleFailover, 10, 11)}, plan.StaleFailover},
		"no moment, and the fault has come":          {"redlock:", check.Violation{Check: check.Fenced}, []check.Fault{step(9, 11, 6), flush}, plan.Clock},
		"no moment, and no fault has come":           {"redlock:", check.Violation{Check: check.Fenced}, []check.Fault{kill}, ""},
		"the clock of the machine":                   {"postgres:", two(10, 12), []check.Fault{clockFault(2 * time.Second), kill}, plan.Clock},
		"the clock of the machine, and sessions":     {"postgres:?mode=session", two(10, 12), []check.Fault{clockFault(2 * time.Second)}, ""},
		"the clock of the machine, and etcd":         {"etcd:", two(10, 12), []check.Fault{clockFault(2 * time.Second)}, ""},
		"the clock of the machine, and tokens":       {"postgres:", old(check.Growing, 10), []check.Fault{clockFault(2 * time.Second)}, ""},
	} {
		var by plan.Nemesis
		if f := against(t, test.store).excuse(test.violation, test.faults); f != nil {
			by = plan.Nemesis(f.Nemesis)
		}
		if by != test.by {
			t.Errorf("%s: it is excused by %q, want %q", name, by, test.by)
		}
	}
}

// The report counts waived violations and the rest.
func TestHold(t *testing.T) {
	s := against(t, "redis:")
	r := s.report()
	early, late := check.Violation{Check: check.Exclusive, At: at(10.2), Reach: at(12)}, check.Violation{Check: check.Exclusive, At: at(30), Reach: at(31)}
	follows := early
	follows.Check, follows.Given = check.Growing, check.Exclusive
	s.hold(r, []check.Violation{early, late, early, follows}, []check.Fault{fault(plan.Flush, 10, 10.1)})
	if len(r.Waived) != 1 || r.Waived[check.Exclusive] != 2 || r.Violations[check.Exclusive] != 1 || len(r.Found) != 1 {
		t.Errorf("waived %v, violations %v, found %v", r.Waived, r.Violations, r.Found)
	}
}

// An unknown outcome is no violation, and proves nothing.
func TestUnproved(t *testing.T) {
	s := against(t, "redlock:")
	r := s.report()
	r.Grants = 1
	s.hold(r, []check.Violation{{Check: check.Fenced, Key: "key1", At: at(10.2), Text: "Porcupine is not done", Unproved: true}}, []check.Fault{fault(plan.Flush, 10, 10.1)})
	if invalid := s.invalid(r); r.Waived[check.Fenced]+r.Violations[check.Fenced] > 0 || !strings.Contains(invalid, "key1: Porcupine is not done") {
		t.Errorf("waived %v, violations %v, and it has proved nothing because %q", r.Waived, r.Violations, invalid)
	}
}

// Two locks on one key are excused by a flush only if one of them has not been
// renewed since: the checks say so of real histories, too.
func TestReachOfTwoHolders(t *testing.T) {
	for renewed, want := range map[float64]bool{0: true, 11: false} {
		var events []history.Event
		add := func(worker int, when float64, e history.Event) {
			e.At, e.Worker, e.Life, e.Client, e.Op, e.Key = at(when), worker, 1, 1, 1, "k"
			events = append(events, e)
		}
		terms := history.Event{Kind: history.Asked, Weight: driver.MaxWeight, Limit: driver.MaxWeight}
		add(1, 9, terms)
		add(1, 9.1, history.Event{Kind: history.Got, Token: 5, Until: at(11.1)})
		if renewed > 0 {
			add(1, renewed, history.Event{Kind: history.Held, Until: at(renewed + 2)})
		}
		add(2, 10.2, terms)
		add(2, 10.9, history.Event{Kind: history.Got, Token: 6, Until: at(12.9)})
		events = append(events,
			history.Event{At: at(10), Kind: history.Fault, Worker: -1, Op: 1, Mode: string(plan.Flush)},
			history.Event{At: at(10.1), Kind: history.Heal, Worker: -1, Op: 1})
		run := check.Of(events)
		found := run.Exclusion(false)
		if len(found) != 1 {
			t.Fatalf("renewed at %v: %v", renewed, found)
		}
		if got := against(t, "redis:").excuse(found[0], run.Faults) != nil; got != want {
			t.Errorf("renewed at %v: it is excused: %v", renewed, got)
		}
	}
}

// A store promises to stand what nothing is waived for.
func TestStands(t *testing.T) {
	s := against(t, "redis:")
	s.target.starter, s.target.started = starter{servers: 1, more: []plan.Nemesis{plan.Evict}}, true
	all, err := s.target.suffers(nil)
	if err != nil || slices.Contains(all, plan.Evict) || !slices.Contains(all, plan.Restart) {
		t.Errorf("what it promises to stand is %v, %v", all, err)
	}
}

// Harm to a server that only follows another, or watches, excuses nothing.
func TestFollowersExcuseNothing(t *testing.T) {
	s := against(t, "redis:")
	s.target.starter.name = "redis-sentinel"
	for role, want := range map[string]bool{history.Primary: true, history.Replica: false, history.Sentinel: false} {
		pause := fault(plan.PauseStore, 10, 11)
		pause.Role = role
		two := check.Violation{Check: check.Exclusive, At: at(11), Reach: at(12)}
		if got := s.excuse(two, []check.Fault{pause}) != nil; got != want {
			t.Errorf("after the pause of a %s: it is excused: %v", role, got)
		}
	}
}

// A server that has missed what was granted lets readers join others from before, and
// gives all others tokens of the clock.
func TestTokensOfAStaleReplica(t *testing.T) {
	for engine, nemeses := range map[string][]plan.Nemesis{
		"redis:2":        {plan.Failover, plan.StaleFailover}, // it may have been acknowledged before it is copied
		"redis-sentinel": {plan.KillStore, plan.PauseStore, plan.Failover, plan.SwitchOver},
		"redis-cluster":  {plan.KillStore, plan.PauseStore, plan.Failover},
	} {
		s := against(t, "redis:")
		s.target.starter.name = engine
		for name, test := range map[string]struct {
			violation check.Violation
			excused   bool
		}{
			"a reader":        {check.Violation{Check: check.Growing, At: at(11), Joined: true}, true},
			"a writer":        {check.Violation{Check: check.Growing, At: at(11)}, false},
			"two at once":     {check.Violation{Check: check.Growing, At: at(11), Given: check.Exclusive}, true},
			"their exclusion": {check.Violation{Check: check.Exclusive, At: at(11), Reach: at(12)}, true},
			"the fence":       {check.Violation{Check: check.Fenced, At: at(11)}, false},
		} {
			for _, n := range nemeses {
				if got := s.excuse(test.violation, []check.Fault{fault(n, 10, 11)}) != nil; got != test.excused {
					t.Errorf("%s of %s after %s: it is excused: %v", name, engine, n, got)
				}
			}
		}
	}
}

// A replica that has confirmed all that was granted has missed nothing when it takes over,
// unless it may be another one that does.
func TestConfirmed(t *testing.T) {
	two := check.Violation{Check: check.Exclusive, At: at(11), Reach: at(12)}
	for engine, test := range map[string]struct {
		store   string
		excused bool
	}{
		"redis:2":        {"redis://h?wait=1", false},
		"redis-sentinel": {"redis://h?wait=1", true},
		"redis-cluster":  {"redis://h?wait=0", true},
	} {
		s := against(t, test.store)
		s.target.starter.name = engine
		if got := s.excuse(two, []check.Fault{fault(plan.Failover, 10, 11)}) != nil; got != test.excused {
			t.Errorf("%s, %s: two holders after a failover are excused: %v", engine, test.store, got)
		}
	}
}
