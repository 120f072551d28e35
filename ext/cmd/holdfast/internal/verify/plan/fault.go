package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Nemesis is a kind of fault.
type Nemesis string

// The nemeses. The first four harm one worker, or what is between it and the
// store; the others harm a server of the store.
const (
	Kill      Nemesis = "kill"       // end a worker by kill -9, and start another
	Pause     Nemesis = "pause"      // stop a worker by SIGSTOP, longer than the TTL
	Partition Nemesis = "partition"  // nothing passes between a worker and the store
	Slow      Nemesis = "slow"       // all that passes is late
	DropReply Nemesis = "drop-reply" // the store does as told, and the answer is lost
)

// Nemeses returns all nemeses, in order.
func Nemeses() []Nemesis {
	return []Nemesis{Kill, Pause, Partition, Slow, DropReply}
}

// Network reports whether a nemesis needs a network between worker and store.
func (n Nemesis) Network() bool { return n == Partition || n == Slow || n == DropReply }

// ParseNemeses reads names with commas between them.
func ParseNemeses(text string) (all []Nemesis, err error) {
	for name := range strings.SplitSeq(text, ",") {
		n := Nemesis(strings.TrimSpace(name))
		if !slices.Contains(Nemeses(), n) {
			return nil, fmt.Errorf("there is no nemesis %q: known are %s", n, List(Nemeses()))
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
	Worker  int           // whom it harms
	For     time.Duration // how long; 0 for a kill
	Delay   time.Duration // of all that passes, for Slow
}

// Faults are the settings of the faults.
type Faults struct {
	Seed    uint64
	Nemeses []Nemesis
	Workers int
	TTL     time.Duration
	Length  time.Duration // of the run
}

// Schedule returns the faults in order of time. Every nemesis comes equally
// often, one worker at least is always left alone, and nobody suffers two
// faults at once.
func (f Faults) Schedule() (all []Fault) {
	random := rand.New(rand.NewPCG(f.Seed, 1<<63))
	between := func(low, high float64) time.Duration {
		return time.Duration((low + (high-low)*random.Float64()) * float64(f.TTL))
	}
	free := make([]time.Duration, f.Workers) // when the last harm to each is over
	var turn []Nemesis
	if len(f.Nemeses) == 0 {
		return nil
	}
	for at := between(0.2, 0.6); at < f.Length-f.TTL/2; at += between(0.4, 1.2) {
		if len(turn) == 0 {
			turn = slices.Clone(f.Nemeses)
			random.Shuffle(len(turn), func(i, j int) { turn[i], turn[j] = turn[j], turn[i] })
		}
		next := Fault{At: at, Nemesis: turn[0], Worker: random.IntN(f.Workers)}
		switch next.Nemesis {
		case Pause:
			next.For = between(1.1, 2.2)
		case Partition:
			next.For = between(0.2, 2.0)
		case DropReply:
			next.For = between(0.05, 1.2)
		case Slow:
			next.For, next.Delay = between(0.5, 2.0), between(0.005, 0.25)
		}
		if busy(free, at) < max(1, f.Workers-1) && free[next.Worker] <= at {
			free[next.Worker] = at + next.For + f.TTL/10
			all, turn = append(all, next), turn[1:]
		}
	}
	return all
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
