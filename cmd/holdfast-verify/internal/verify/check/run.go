// Package check judges the history of a run. A check is a function of the history alone, so
// tests can run the check on histories made by hand, good and bad.
//
// Exclusion and the growth of tokens do not depend on the speed of a process or on its
// scheduling. A check takes the start of a span from after the real start, and the end from
// before the real end. So spans that overlap in the history have overlapped.
//
// Delays do depend on speed. So the checks allow some time to report a loss ([Told]), to
// renew a lock ([Kept]) and to acquire a lock ([Lively]). The times in which processes
// report that they have not run come on top. On a machine too slow even for that, a check
// may find the three promises broken though the store has kept the promises.
package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
)

// Never is the time of an event that has not happened.
const Never = math.MaxInt64

// A Who is a goroutine of a process.
type Who struct{ Worker, Life, Client int }

// A Hold is a lock on a key, from its request on.
type Hold struct {
	Who    Who
	Op     int
	Key    string
	Mode   string
	Weight int64
	Limit  int64

	Asked    int64
	Got      int64  // Never if it was not granted
	Late     bool   // already lost: the process was stopped just after the grant
	Token    uint64 // 0 if the token is unknown, or the store has given no token
	Until    int64  // the last known deadline; Never without a deadline
	Held     int64  // the last time at which the lock was held, as the holder said afterwards
	Lost     int64  // when the loss was reported; Never if not
	Unlocked int64  // before Unlock; Never if not called
	Freed    int64  // after Unlock
	Refused  int64  // when the refusal was known
	Entered  []history.Event
	Note     string // why it was refused or lost
	Dying    int64  // before the process was ended; Never if it was not
	Died     int64  // when the process was gone
}

// An Access is an operation on a fenced register.
type Access struct {
	Who         Who
	Key         string
	Token       uint64 // 0 for a read without a token
	Value       uint64 // written or read
	Write, Look bool
	Seen        uint64 // the value that a write follows
	No          bool   // refused
	Call        int64
	Return      int64
	Unknown     bool // the process ended during the access: the access may or may not have counted
}

// A Span is a time with a start and an end.
type Span struct{ From, To int64 }

// A Life is a process.
type Life struct {
	Worker, Life int
	Born, Died   int64
	Dying        int64 // before the process was ended
	Stalls       []Span
	Bye          bool   // the process has ended by itself
	Remains      string // what the process has left behind
	End          string // how the process has ended
}

// A Fault is a fault that was done.
type Fault struct {
	Span
	Nemesis string
	Worker  int
	Step    int64    // of a clock, in nanoseconds
	Role    string   // of the server, "" if no server follows a leader
	Evicted []string // keys of locks that the server has evicted
	Touched uint64   // pieces of the traffic between the worker and the store
}

// Matters reports whether a fault can have had an effect on grants. A fault of a server has
// no effect if the server only follows, or watches, the server that grants.
func (f Fault) Matters() bool { return f.Role == "" || f.Role == history.Primary }

// An Effect records that an effect began under a lock, or that a caller has its result.
type Effect struct {
	Who   Who
	Key   string
	Token uint64
	Value uint64
	At    int64
}

// A Run is the history of a run.
type Run struct {
	Holds    []*Hold
	Accesses []*Access
	Lives    []*Life
	Faults   []Fault
	Effects  []Effect
	Results  []Effect
	Failures []string // of registers, the first of each process
}

// A Promise is the subject of a check.
type Promise string

// The promises.
const (
	Exclusive Promise = "exclusion" // no two holders by the store's own account
	Fenced    Promise = "fence"     // no token is accepted after a larger token
	Growing   Promise = "tokens"    // each grant has a larger token
	Told      Promise = "told"      // a holder knows of its loss before the next grant
	Kept      Promise = "kept"      // a lock is not lost that could be renewed
	Lively    Promise = "progress"  // a waiter acquires a free key
	Single    Promise = "once"      // no effect runs again once its result is known
	Tidy      Promise = "tidy"      // nothing is left at the end
)

// Promises returns every promise, in order.
func Promises() []Promise {
	return []Promise{Exclusive, Fenced, Growing, Told, Kept, Lively, Single, Tidy}
}

// A Violation is a broken promise.
type Violation struct {
	Check Promise `json:"check"`
	Key   string  `json:"key,omitempty"`
	At    int64   `json:"at"` // nanoseconds, by the clock of the history; 0 without a moment
	Text  string  `json:"text"`
	View  string  `json:"-"` // a page by Porcupine for accesses that are not linearizable

	// Reach is how far the effect of a fault must reach to have led to the violation; 0
	// means At. A lock that the store has confirmed since stands in spite of the fault. So
	// for locks, Reach is the first of their deadlines.
	Reach int64 `json:"-"`

	// Unproved means that nobody knows: no violation, and no proof either.
	Unproved bool `json:"-"`

	// Given is a promise on which the violation rests, "" for no promise.
	Given Promise `json:"-"`

	// Joined reports that the token is a reader's, and several readers may share the token.
	Joined bool `json:"-"`
}

// Overlaps reports whether two spans have a moment in common.
func (s Span) Overlaps(o Span) bool { return s.From < o.To && o.From < s.To }

func (w Who) String() string { return fmt.Sprintf("worker %d.%d/%d", w.Worker, w.Life, w.Client) }

// life returns a process, nil if the process is unknown.
func (r *Run) life(w Who) *Life {
	i := slices.IndexFunc(r.Lives, func(l *Life) bool { return l.Worker == w.Worker && l.Life == w.Life })
	if i < 0 {
		return nil
	}
	return r.Lives[i]
}

// byKey divides holds by their keys.
func byKey[T any](all []T, key func(T) string) map[string][]T {
	keys := make(map[string][]T)
	for _, one := range all {
		keys[key(one)] = append(keys[key(one)], one)
	}
	return keys
}

// granted returns the granted holds of each key, in order of time. A hold that was lost
// before its holder knew of the grant is left out: nobody can tell when the store granted
// the lock.
func (r *Run) granted() map[string][]*Hold {
	keys := byKey(r.Holds, func(h *Hold) string { return h.Key })
	for key, all := range keys {
		all = slices.DeleteFunc(all, func(h *Hold) bool { return h.Got == Never || h.Late })
		slices.SortFunc(all, func(a, b *Hold) int { return cmp.Compare(a.Got, b.Got) })
		keys[key] = all
	}
	return keys
}
