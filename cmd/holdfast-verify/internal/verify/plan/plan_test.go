package plan

import (
	"reflect"
	"slices"
	"testing"
	"time"
)

func workload(seed uint64) Workload {
	return Workload{Seed: seed, Kinds: Kinds(), Keys: 4, TTL: time.Second}
}

func series(o *Operations, n int) (all []Operation) {
	for range n {
		all = append(all, o.Next())
	}
	return all
}

func TestOperationsFollowFromTheSeed(t *testing.T) {
	a, b := series(workload(1).Client(2, 1, 3), 1000), series(workload(1).Client(2, 1, 3), 1000)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave other operations")
	}
	for name, other := range map[string]*Operations{
		"seed":   workload(2).Client(2, 1, 3),
		"worker": workload(1).Client(1, 1, 3),
		"life":   workload(1).Client(2, 2, 3),
		"client": workload(1).Client(2, 1, 4),
	} {
		if reflect.DeepEqual(a, series(other, 1000)) {
			t.Errorf("another %s gave the same operations", name)
		}
	}
}

func TestOperationsHaveEveryKind(t *testing.T) {
	count := make(map[Kind]int)
	for _, op := range series(workload(1).Client(0, 1, 1), 2000) {
		count[op.Kind]++
		if slices.Sort(op.Keys); len(slices.Compact(op.Keys)) != len(op.Keys) {
			t.Errorf("%s of equal keys: %v", op.Kind, op.Keys)
		}
	}
	for _, kind := range Kinds() {
		if count[kind] == 0 {
			t.Errorf("no operation is %s", kind)
		}
	}
}

func TestFaultsFollowFromTheSeed(t *testing.T) {
	f := Faults{Seed: 7, Nemeses: Nemeses(), Workers: 4, Nodes: 3, TTL: 2 * time.Second, Length: 2 * time.Minute}
	all := f.Schedule()
	if !reflect.DeepEqual(all, f.Schedule()) {
		t.Error("the same seed gave other faults")
	}
	other := f
	other.Seed++
	if reflect.DeepEqual(all, other.Schedule()) {
		t.Error("another seed gave the same faults")
	}
	for _, n := range f.Nemeses {
		if !slices.ContainsFunc(all, func(fault Fault) bool { return fault.Nemesis == n }) {
			t.Errorf("no fault is %s", n)
		}
	}
}

// Each nemesis comes once before any comes twice, whatever the order in which they
// were named, and in the time that Enough says.
func TestFaultsTakeTurns(t *testing.T) {
	for seed := range uint64(200) {
		f := Faults{Seed: seed, Nemeses: Nemeses(), Workers: 4, Nodes: 3, TTL: 2 * time.Second, Respite: 9 * time.Second}
		f.Length = f.Enough()
		all := f.Schedule()
		count := make(map[Nemesis]int)
		for i, fault := range all {
			if count[fault.Nemesis]++; count[fault.Nemesis] > 1+i/len(f.Nemeses) {
				t.Fatalf("seed %d: fault %d is %s again, before all others had come", seed, i, fault.Nemesis)
			}
		}
		if len(count) < len(f.Nemeses) || f.Length > 2*time.Minute {
			t.Fatalf("seed %d: in %v only %v have come", seed, f.Length, count)
		}
		slices.Reverse(f.Nemeses)
		if !reflect.DeepEqual(f.Schedule(), all) {
			t.Fatalf("seed %d: in another order the same nemeses come otherwise", seed)
		}
	}
	if length := (Faults{Workers: 2, TTL: time.Second}).Enough(); length != 0 {
		t.Errorf("no nemesis takes %v", length)
	}
}

// A clock goes so far forward, one time in two at least, that what is held runs out.
func TestClocksGoForward(t *testing.T) {
	for seed := range uint64(50) {
		f := Faults{Seed: seed, Nemeses: []Nemesis{Clock}, Workers: 2, Nodes: 1, TTL: time.Second, Length: time.Minute}
		back := false
		for i, fault := range f.Schedule() {
			if i%2 == 0 && fault.Step <= f.TTL {
				t.Errorf("seed %d: step %d is of %v", seed, i, fault.Step)
			}
			back = back || fault.Step < 0
		}
		if !back {
			t.Errorf("seed %d: no clock goes back", seed)
		}
	}
}

// One worker at least is left alone, so that there is someone to be kept out.
func TestFaultsLeaveOneAlone(t *testing.T) {
	for seed := range uint64(50) {
		f := Faults{Seed: seed, Nemeses: Nemeses()[:6], Workers: 3, TTL: time.Second, Length: time.Minute}
		all := f.Schedule()
		for i, fault := range all {
			harmed := map[int]bool{fault.Worker: true}
			for _, before := range all[:i] {
				if before.At+before.For > fault.At {
					if harmed[before.Worker] && before.Worker == fault.Worker {
						t.Fatalf("seed %d: two faults at once for worker %d", seed, fault.Worker)
					}
					harmed[before.Worker] = true
				}
			}
			if len(harmed) == f.Workers {
				t.Fatalf("seed %d: all workers are harmed at %v", seed, fault.At)
			}
		}
	}
}

// Of servers that follow others mostly one that leads is harmed, and the first time that
// a nemesis comes for certain.
func TestFaultsOfLeaders(t *testing.T) {
	for seed := range uint64(50) {
		f := Faults{Seed: seed, Nemeses: []Nemesis{Kill, Restart, PauseStore}, Workers: 3, Nodes: 6, TTL: time.Second, Length: time.Minute}
		leader, others := make(map[Nemesis]int), make(map[Nemesis]int)
		for _, fault := range f.Schedule() {
			switch {
			case fault.Leader:
				leader[fault.Nemesis]++
			case leader[fault.Nemesis] == 0 && fault.Nemesis.Server():
				t.Fatalf("seed %d: the first %s is of node %d", seed, fault.Nemesis, fault.Node)
			default:
				others[fault.Nemesis]++
			}
		}
		if leader[Kill] > 0 || leader[Restart] < 2*others[Restart] || others[Restart] == 0 || leader[PauseStore] < 2*others[PauseStore] {
			t.Fatalf("seed %d: leaders are harmed %v times, any %v times", seed, leader, others)
		}
	}
}

// One server at a time suffers, and the end of a run is left in peace.
func TestFaultsOfServers(t *testing.T) {
	for seed := range uint64(50) {
		f := Faults{Seed: seed, Nemeses: Nemeses()[6:], Workers: 3, Nodes: 3, TTL: time.Second, Length: time.Minute}
		var calm time.Duration
		for _, fault := range f.Schedule() {
			if fault.Worker != -1 || fault.Node < 0 || fault.Node > 2 || fault.At < calm || fault.At > 48*time.Second {
				t.Fatalf("seed %d: %+v", seed, fault)
			}
			calm = fault.At + fault.For
		}
	}
}

// A few faults of servers in a row are followed by a time in which what they have left
// can be told from what stays.
func TestServersGetRespite(t *testing.T) {
	for seed := range uint64(50) {
		f := Faults{Seed: seed, Nemeses: Nemeses(), Workers: 4, Nodes: 3, TTL: 2 * time.Second, Length: 3 * time.Minute, Respite: 10 * time.Second}
		var over time.Duration
		n, close := 0, 0
		for _, fault := range f.Schedule() {
			if !fault.Nemesis.Server() {
				continue
			}
			calm := fault.At - over
			if n > 0 && n%burst == 0 && calm < f.Respite {
				t.Fatalf("seed %d: fault %d, %+v, comes %v after the last one", seed, n, fault, calm)
			}
			if n%burst > 0 && calm < f.Respite/2 {
				close++
			}
			n, over = n+1, fault.At+fault.For
		}
		if n < 15 || close < n/3 {
			t.Errorf("seed %d: of %d faults of servers %d come soon after another", seed, n, close)
		}
	}
}

// Every other partition is from one of several servers, whichever the seed says.
func TestPartitionsOfPart(t *testing.T) {
	f := Faults{Seed: 3, Nemeses: []Nemesis{Partition}, Workers: 3, Nodes: 3, TTL: time.Second, Length: time.Minute}
	from := make(map[int]bool)
	for i, fault := range f.Schedule() {
		if fault.Part != (i%2 == 1) {
			t.Errorf("partition %d is from one server alone: %v", i, fault.Part)
		}
		from[fault.Node%3] = true
	}
	if len(from) != 3 {
		t.Errorf("of three servers %d were chosen", len(from))
	}
}

// A run that is long enough ends with a respite, in which what stays out of reach can be
// told from what is late. A shorter one has its faults in most of it, and one that is not
// much longer has as many.
func TestEndIsInPeace(t *testing.T) {
	const respite = 9 * time.Second
	for length, end := range map[time.Duration]time.Duration{
		5 * time.Second:  4 * time.Second,
		8 * time.Second:  6 * time.Second,
		15 * time.Second: 6 * time.Second,
		20 * time.Second: 11 * time.Second,
		time.Minute:      48 * time.Second,
	} {
		var last time.Duration
		for seed := range uint64(50) {
			f := Faults{Seed: seed, Nemeses: []Nemesis{Kill, Slow}, Workers: 4, Nodes: 1, TTL: time.Second, Length: length, Respite: respite}
			all := f.Schedule()
			last = max(last, all[len(all)-1].At)
			f.Nemeses = []Nemesis{KillStore, Kill}
			for _, fault := range f.Schedule() {
				if fault.Nemesis == KillStore && fault.At+fault.For > end {
					t.Errorf("in %v a server is away for %v from %v, want it back by %v", length, fault.For, fault.At, end)
				}
			}
		}
		if last >= end || last < end-time.Second {
			t.Errorf("in %v the last fault comes after %v, want just before %v", length, last, end)
		}
	}
}

func TestValue(t *testing.T) {
	want := [4]int{31, 1<<20 - 1, 64, 1<<28 - 1}
	var got [4]int
	got[0], got[1], got[2], got[3] = Origin(Value(want[0], want[1], want[2], want[3]))
	if got != want {
		t.Errorf("the value of %v is from %v", want, got)
	}
}

func TestParseNemeses(t *testing.T) {
	got, err := ParseNemeses("kill, drop-reply,kill")
	if err != nil || !slices.Equal(got, []Nemesis{Kill, DropReply}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := ParseNemeses(None); err != nil || got == nil || len(got) > 0 {
		t.Errorf("none is %v, %v", got, err)
	}
	for _, wrong := range []string{"", "kill,", "fire", "kill,none"} {
		if _, err := ParseNemeses(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

// A call that waits for one key of several holds further keys, which count as free. So such
// a wait is short.
func TestManyGivesUp(t *testing.T) {
	for _, op := range series(workload(1).Client(0, 1, 1), 2000) {
		if op.Kind == Many && (op.Wait == 0 || op.Wait > 2*time.Second) {
			t.Fatalf("%v of several keys", op.Wait)
		}
	}
}
