// Package plan plans the operations of the workers, and the faults. The plan follows from a
// seed: the same seed, with the same settings, gives the same operations and the same
// faults at the same times. The results differ from run to run, because the timing of
// processes and networks differs.
package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Kind is a kind of operation.
type Kind string

// The kinds of operations.
const (
	Exclusive Kind = "exclusive" // a key whose registers are read and written
	Try       Kind = "try"       // as exclusive, without waiting
	Reenter   Kind = "reenter"   // enters the lock a second time under the first
	Many      Kind = "many"      // several keys at once
	Shared    Kind = "shared"    // reads the register beside further readers
	Slots     Kind = "slots"     // one of a few places, on separate keys
	Elect     Kind = "elect"     // an election, and one term of office
	Once      Kind = "once"      // an effect that is to happen once for its key
)

// SlotLimit is how many holders may have a slot of a key at once.
const SlotLimit = 3

// Kinds returns every kind, in order.
func Kinds() []Kind {
	return []Kind{Exclusive, Try, Reenter, Many, Shared, Slots, Elect, Once}
}

// ParseKinds reads names with commas between them.
func ParseKinds(text string) ([]Kind, error) { return parse(text, "kind", Kinds()) }

// shares are the relative frequencies of the kinds.
var shares = map[Kind]int{Exclusive: 42, Try: 10, Reenter: 5, Many: 5, Shared: 15, Slots: 13, Elect: 5, Once: 5}

// An Operation is a lock and the work under the lock.
type Operation struct {
	Kind Kind
	Keys []string      // more than one for Many
	Wait time.Duration // how long to wait; 0 for no limit
	Hold time.Duration // how long the work takes
	Rest time.Duration // how long to do nothing afterwards
}

// Workload are the settings of the operations.
type Workload struct {
	Seed  uint64
	Kinds []Kind // kinds that the store can do
	Keys  int
	TTL   time.Duration
}

// Operations is the endless series of a client.
type Operations struct {
	Workload
	rand    *rand.Rand
	bag     []Kind
	patient bool
	count   int
}

// Client returns the operations of a goroutine of a process, counted from 1. The first
// goroutine of a process waits without a limit. The rest mostly give up soon: a stopped
// worker blocks a few keys for seconds, and if every goroutine waited for the keys, nothing
// else would happen meanwhile.
func (w Workload) Client(worker, life, client int) *Operations {
	stream := uint64(worker)<<40 | uint64(life)<<20 | uint64(client)
	o := &Operations{Workload: w, rand: rand.New(rand.NewPCG(w.Seed, stream)), patient: client == 1}
	for _, kind := range w.Kinds {
		o.bag = append(o.bag, slices.Repeat([]Kind{kind}, shares[kind])...)
	}
	return o
}

// Next returns the next operation.
func (o *Operations) Next() Operation {
	o.count++
	op := Operation{
		Kind: o.bag[o.rand.IntN(len(o.bag))],
		Hold: o.hold(),
		Rest: o.upTo(2 * time.Millisecond),
	}
	switch op.Kind {
	case Slots:
		op.Keys = []string{o.key("slots")}
	case Elect:
		op.Keys = []string{o.key("leader")}
	case Once:
		op.Keys = []string{fmt.Sprintf("effect%d", o.count/5+o.rand.IntN(8))} // the rest of the clients reach the same keys
	case Many:
		op.Keys = o.keys()
	default:
		op.Keys = []string{o.key("key")}
	}
	if wait := time.Millisecond + o.upTo(50*time.Millisecond); !o.patient && o.rand.IntN(100) > 0 {
		op.Wait = wait
	}
	if op.Kind == Many {
		// While the operation waits for a key, it has further keys. Nobody can see that the
		// further keys are held.
		op.Wait = time.Millisecond + o.upTo(time.Second)
	}
	return op
}

// hold is mostly short, because a run is to have many operations. A few holds are so long
// that the lock has to be renewed, or is lost meanwhile.
func (o *Operations) hold() time.Duration {
	switch n := o.rand.IntN(1000); {
	case n < 970 && o.patient: // so that most faults meet a held lock
		return o.upTo(50 * time.Millisecond)
	case n < 900:
		return o.upTo(time.Millisecond)
	case n < 998 && !o.patient:
		return o.upTo(20 * time.Millisecond)
	}
	return o.TTL/3 + o.upTo(3*o.TTL)
}

func (o *Operations) upTo(d time.Duration) time.Duration {
	return time.Duration(o.rand.Int64N(int64(d)))
}

// Guarded returns the keys that guard registers.
func (w Workload) Guarded() (keys []string) {
	for n := range w.Keys {
		keys = append(keys, fmt.Sprintf("key%d", n), fmt.Sprintf("leader%d", n))
	}
	return keys
}

func (o *Operations) key(stem string) string {
	return fmt.Sprintf("%s%d", stem, o.rand.IntN(o.Workload.Keys))
}

// keys returns a few different keys, in a random order. LockAll has to sort the keys.
func (o *Operations) keys() (keys []string) {
	all := o.rand.Perm(o.Workload.Keys)
	for _, n := range all[:min(len(all), 2+o.rand.IntN(2))] {
		keys = append(keys, fmt.Sprintf("key%d", n))
	}
	return keys
}
