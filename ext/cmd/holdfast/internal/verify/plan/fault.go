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

// The nemeses of workers, and of what is between them and the store.
const (
	Kill        Nemesis = "kill"         // end a worker by kill -9, and start another
	Pause       Nemesis = "pause"        // stop a worker by SIGSTOP, longer than the TTL
	Partition   Nemesis = "partition"    // nothing passes between a worker and the store, or one of its servers
	Slow        Nemesis = "slow"         // all that passes is late
	DropReply   Nemesis = "drop-reply"   // the store does as told, and the answer is lost
	WorkerClock Nemesis = "worker-clock" // set the clock of a worker forward or back, and later right
)

// The nemeses of the store's servers.
const (
	Restart       Nemesis = "restart"        // end a server by kill -9, and start it again at once
	KillStore     Nemesis = "kill-store"     // the same, but it stays away for a while
	PauseStore    Nemesis = "pause-store"    // stop a server by SIGSTOP
	CutStore      Nemesis = "cut-store"      // nothing passes between a server and the others
	Failover      Nemesis = "failover"       // end the server that leads, and let a replica take over
	StaleFailover Nemesis = "stale-failover" // the same, but the replica has heard nothing for a while
	SwitchOver    Nemesis = "switch-over"    // order a replica to take over from the server that leads
	Clock         Nemesis = "clock"          // set the clock of a server forward or back, and later right
	Evict         Nemesis = "evict"          // let a server run out of memory, so that it forgets some locks
	Flush         Nemesis = "flush"          // let a server forget all that it has in memory
)

// Nemeses returns all nemeses, in order.
func Nemeses() []Nemesis {
	return []Nemesis{Kill, Pause, Partition, Slow, DropReply, WorkerClock, Restart, KillStore, PauseStore, CutStore, Failover, StaleFailover, SwitchOver, Clock, Evict, Flush}
}

// Network reports whether a nemesis needs a proxy between worker and store.
func (n Nemesis) Network() bool { return n == Partition || n == Slow || n == DropReply }

// Server reports whether a nemesis harms a server, and not a worker.
func (n Nemesis) Server() bool { return slices.Index(Nemeses(), n) >= slices.Index(Nemeses(), Restart) }

// TakeOver reports whether a nemesis is that another server comes to lead: the servers
// say which, and who does until then.
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

// parse reads names with commas between them, each of something known.
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

// A Fault is one harm.
type Fault struct {
	At      time.Duration // after the start of the run
	Nemesis Nemesis
	Worker  int           // whom it harms, -1 for a server
	Node    int           // the server, if it harms one, or a Part
	Part    bool          // of a partition: from one address of the store, not from all
	Leader  bool          // of servers that follow others, one that leads instead; if several do, Node says which
	For     time.Duration // how long; 0 for what is over at once
	Delay   time.Duration // of all that passes, for Slow
	Step    time.Duration // of a clock
}

// burst is how many faults of servers come between two respites.
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
	Respite time.Duration // in which no server is harmed after a burst of faults of servers, and nobody at the end
}

// Schedule returns the faults in order of time, in whatever order the nemeses are.
// Each comes once before any comes twice, and so on. One worker at least is always
// left alone, nobody suffers two faults at once, and only one server suffers at a time.
// Those of a burst may join in what they leave behind, and then there is a respite.
// The end of the run is left in peace.
func (f Faults) Schedule() (all []Fault) {
	end := f.peace()
	for next := range f.series() {
		if next.At >= end {
			break
		}
		if next.Nemesis.Server() { // as long as one is harmed, all who wait are excused
			next.For = min(next.For, end-next.At)
		}
		all = append(all, next)
	}
	return all
}

// peace returns when the end of the run begins: its last fifth, and all of the respite
// if there is time for faults before that.
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
	turn  []Nemesis       // that are still to come before any comes again
	free  []time.Duration // when the last harm to each worker is over
	calm  time.Duration   // the same of the servers
	harms int             // to them
	steps int             // of clocks
	times map[Nemesis]int // how often each has come
}

// between draws a time, in parts of the TTL.
func (d *dice) between(low, high float64) time.Duration {
	return time.Duration((low + (high-low)*d.Float64()) * float64(d.TTL))
}

// next draws the fault of a time. There is none if whom the rest of the turn would
// harm has not got over the last one.
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
		f.Leader = d.times[n]%3 < 2 // of two replicas, or Sentinels, to a primary the wrong one mostly comes
	} else {
		f.Worker = d.IntN(d.Workers)
	}
	switch n {
	case Pause:
		f.For = d.between(1.1, longest)
	case Partition:
		f.For = d.between(0.2, 2.0)
		f.Part, f.Node = d.times[n]%2 == 1, d.IntN(math.MaxInt32) // of however many addresses there are
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
		if d.steps%2 == 0 { // what is held runs out at once
			f.Step = d.between(1.2, 3)
		}
	}
	return f
}

// busy counts who is still harmed.
func busy(free []time.Duration, at time.Duration) (n int) {
	for _, end := range free {
		if end > at {
			n++
		}
	}
	return n
}
