package plan

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Nemesis is a kind of fault.
type Nemesis string

// The nemeses of workers, and of the network between workers and the store.
const (
	Kill        Nemesis = "kill"         // end a worker by kill -9, and start a new worker
	Pause       Nemesis = "pause"        // stop a worker by SIGSTOP, longer than the TTL
	Partition   Nemesis = "partition"    // nothing passes between a worker and the store, or a server of the store
	Slow        Nemesis = "slow"         // all traffic is late
	DropReply   Nemesis = "drop-reply"   // the store executes the request, and the reply is lost
	WorkerClock Nemesis = "worker-clock" // set the clock of a worker forward or back, and later right
)

// The nemeses of the store's servers.
const (
	Restart       Nemesis = "restart"        // end a server by kill -9, and start it again at once
	KillStore     Nemesis = "kill-store"     // as restart, but the server stays away for a while
	PauseStore    Nemesis = "pause-store"    // stop a server by SIGSTOP
	CutStore      Nemesis = "cut-store"      // nothing passes between a server and the rest
	Failover      Nemesis = "failover"       // end the leading server, and let a replica take over
	StaleFailover Nemesis = "stale-failover" // as failover, but the replica has received nothing for a while
	SwitchOver    Nemesis = "switch-over"    // order a replica to take over from the leading server
	Clock         Nemesis = "clock"          // set the clock of a server forward or back, and later right
	Evict         Nemesis = "evict"          // let a server run out of memory, so that the server forgets some locks
	Flush         Nemesis = "flush"          // let a server forget everything in memory
)

// Nemeses returns every nemesis, in order.
func Nemeses() []Nemesis {
	return []Nemesis{Kill, Pause, Partition, Slow, DropReply, WorkerClock, Restart, KillStore, PauseStore, CutStore, Failover, StaleFailover, SwitchOver, Clock, Evict, Flush}
}

// Network reports whether a nemesis needs a proxy between worker and store.
func (n Nemesis) Network() bool { return n == Partition || n == Slow || n == DropReply }

// Server reports whether a nemesis harms a server, and not a worker.
func (n Nemesis) Server() bool { return slices.Index(Nemeses(), n) >= slices.Index(Nemeses(), Restart) }

// TakeOver reports whether a nemesis makes a new server the leader. The servers report the
// leaders before and after.
func (n Nemesis) TakeOver() bool { return n == Failover || n == StaleFailover || n == SwitchOver }

// None is the name for no nemesis at all.
const None = "none"

// ParseNemeses reads names with commas between them, or None.
func ParseNemeses(text string) (all []Nemesis, err error) {
	if text == None {
		return []Nemesis{}, nil
	}
	return parse(text, "nemesis", Nemeses())
}

// parse reads known names with commas between them.
func parse[T ~string](text, what string, known []T) (all []T, err error) {
	for name := range strings.SplitSeq(text, ",") {
		n := T(strings.TrimSpace(name))
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("there is no %s %q: known are %s", what, n, List(known))
		}
		if !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all, nil
}

// List joins names with commas.
func List[T ~string](all []T) string {
	names := make([]string, len(all))
	for i, name := range all {
		names[i] = string(name)
	}
	return strings.Join(names, ",")
}

// A Fault is a planned fault.
type Fault struct {
	At      time.Duration // after the start of the run
	Nemesis Nemesis
	Worker  int           // the victim, -1 for a server
	Node    int           // the server, for a server fault or a Part
	Part    bool          // of a partition: from one address of the store only
	Leader  bool          // if servers follow leaders, harm a leader; of several leaders, Node selects
	For     time.Duration // how long; 0 for a fault that is over at once
	Delay   time.Duration // of all traffic, for Slow
	Step    time.Duration // of a clock
}

// burst is the number of server faults between two respites.
const burst = 8

// longest is how many TTLs a fault lasts at most.
const longest = 2.2

// Longest is how long a fault lasts at most.
func Longest(ttl time.Duration) time.Duration { return time.Duration(longest * float64(ttl)) }

// Faults are the settings of the faults.
type Faults struct {
	Seed    uint64
	Nemeses []Nemesis
	Workers int
	Nodes   int // servers of the store
	TTL     time.Duration
	Length  time.Duration // of the run
	Respite time.Duration // without server faults after a burst of server faults, and without faults at the end
}

// Schedule returns the faults in order of time. The order of the nemeses in f makes no
// difference. Each nemesis comes once before a nemesis comes twice, and so on. At least one
// worker is always left alone. No victim suffers two faults at once, and only one server
// suffers at a time. The after-effects of the faults of a burst may overlap, and a respite
// follows. The end of the run has no faults.
func (f Faults) Schedule() (all []Fault) {
	end := f.peace()
	for next := range f.series() {
		if next.At >= end {
			break
		}
		if next.Nemesis.Server() { // while a server is harmed, every waiter is excused
			next.For = min(next.For, end-next.At)
		}
		all = append(all, next)
	}
	return all
}

// peace returns when the end of the run begins. The end is the last fifth of the run, and
// the whole respite if there is time for faults before.
func (f Faults) peace() time.Duration {
	return min(f.Length*4/5, max(f.Respite*2/3, f.Length-f.Respite))
}

// Enough returns a length in which each nemesis comes at least once.
func (f Faults) Enough() time.Duration {
	var seen []Nemesis
	for next := range f.series() {
		if !slices.Contains(seen, next.Nemesis) {
			seen = append(seen, next.Nemesis)
		}
		if len(seen) == len(f.Nemeses) {
			for f.Length = time.Second; f.peace() <= next.At; {
				f.Length += time.Second
			}
			return f.Length
		}
	}
	return 0
}

// series yields faults without end, if there are nemeses.
func (f Faults) series() iter.Seq[Fault] {
	return func(yield func(Fault) bool) {
		if len(f.Nemeses) == 0 {
			return
		}
		d := &dice{Faults: f, Rand: rand.New(rand.NewPCG(f.Seed, 1<<63)), free: make([]time.Duration, f.Workers), times: make(map[Nemesis]int)}
		for at := d.between(0.2, 0.6); ; at += d.between(0.4, 1.2) {
			if next, can := d.next(at); can && !yield(next) {
				return
			}
		}
	}
}

// A dice draws faults.
type dice struct {
	Faults
	*rand.Rand
	turn  []Nemesis       // still to come before a nemesis comes again
	free  []time.Duration // when the last fault of each worker is over
	calm  time.Duration   // when the last fault of the servers is over
	harms int             // to the servers
	steps int             // of clocks
	times map[Nemesis]int // how often each nemesis has come
}

// between draws a time, in parts of the TTL.
func (d *dice) between(low, high float64) time.Duration {
	return time.Duration((low + (high-low)*d.Float64()) * float64(d.TTL))
}

// next draws the fault of a time. next draws no fault if every victim in the rest of the
// turn is still recovering from its last fault.
func (d *dice) next(at time.Duration) (Fault, bool) {
	if len(d.turn) == 0 {
		d.turn = slices.DeleteFunc(Nemeses(), func(n Nemesis) bool { return !slices.Contains(d.Nemeses, n) })
		d.Shuffle(len(d.turn), func(i, j int) { d.turn[i], d.turn[j] = d.turn[j], d.turn[i] })
	}
	for i, n := range d.turn {
		f := d.fault(at, n)
		over := at + f.For + d.TTL/10
		switch {
		case n.Server() && d.calm <= at:
			d.calm = over + d.TTL*3/2 // in which the store can be of use
			if d.harms++; d.harms%burst == 0 {
				d.calm = max(d.calm, over+d.Respite)
			}
		case !n.Server() && d.free[f.Worker] <= at && busy(d.free, at) < max(1, d.Workers-1):
			d.free[f.Worker] = over
		default:
			continue
		}
		if f.Step != 0 {
			d.steps++
		}
		d.times[n]++
		d.turn = slices.Delete(d.turn, i, i+1)
		return f, true
	}
	return Fault{}, false
}

func (d *dice) fault(at time.Duration, n Nemesis) Fault {
	f := Fault{At: at, Nemesis: n, Worker: -1}
	if n.Server() {
		f.Node = d.IntN(max(1, d.Nodes))
		f.Leader = d.times[n]%3 < 2 // with two replicas or Sentinels for a primary, a random node is mostly not the primary
	} else {
		f.Worker = d.IntN(d.Workers)
	}
	switch n {
	case Pause:
		f.For = d.between(1.1, longest)
	case Partition:
		f.For = d.between(0.2, 2.0)
		f.Part, f.Node = d.times[n]%2 == 1, d.IntN(math.MaxInt32) // modulo the number of addresses
	case DropReply:
		f.For = d.between(0.05, 1.2)
	case Slow:
		f.For, f.Delay = d.between(0.5, 2.0), d.between(0.005, 0.25)
	case KillStore, PauseStore, CutStore, StaleFailover:
		f.For = d.between(0.1, 1.5)
	case Evict:
		f.For = d.between(0.4, 1.2)
	case Clock, WorkerClock:
		f.For, f.Step = d.between(0.5, 1.5), d.between(-3, 3)
		if d.steps%2 == 0 { // held locks expire at once
			f.Step = d.between(1.2, 3)
		}
	}
	return f
}

// busy counts the workers that are still harmed.
func busy(free []time.Duration, at time.Duration) (n int) {
	for _, end := range free {
		if end > at {
			n++
		}
	}
	return n
}
