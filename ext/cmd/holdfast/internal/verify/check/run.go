// Package check judges the history of a run. Each check is a function of the
// history alone, so that it can be tried on histories made by hand, good and
// bad.
//
// Whether locks excluded each other, and tokens grew, does not depend on how fast a
// process is or when it is scheduled. Times that a check takes as the start of
// something are from after it had begun, and those of an end from before it: what
// overlaps in the history has overlapped.
//
// How soon something came to pass does depend on it. So there is some time to be told of
// a loss ([Told]), to renew a lock ([Kept]) and to get one ([Lively]), besides that in
// which processes say that they have not run. On a machine too slow even for that, these
// may be found broken though the store has kept them.
package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/history"
)

// Never is the time of what has not happened.
const Never = math.MaxInt64

// A Who is one goroutine of one process.
type Who struct{ Worker, Life, Client int }

// A Hold is one lock on one key, from when it was asked for.
type Hold struct {
	Who    Who
	Op     int
	Key    string
	Mode   string
	Weight int64
	Limit  int64

	Asked    int64
	Got      int64  // Never if it was not granted
	Late     bool   // it was lost by then: its process was stopped just after the grant
	Token    uint64 // 0 if it is not known, or the store has given none
	Until    int64  // the last known deadline; Never if it had none
	Held     int64  // the last time of which the holder said afterwards that it held
	Lost     int64  // when the loss was told; Never if not
	Unlocked int64  // before Unlock; Never if not called
	Freed    int64  // after Unlock
	Refused  int64  // when it was known that it is not granted
	Entered  []history.Event
	Note     string // why it was refused or lost
	Dying    int64  // before the process was ended; Never if it was not
	Died     int64  // when it was gone
}

// An Access is one operation on a fenced register.
type Access struct {
	Who         Who
	Key         string
	Token       uint64 // 0 for a read without
	Value       uint64 // written or read
	Write, Look bool
	Seen        uint64 // the value that a write follows
	No          bool   // refused
	Call        int64
	Return      int64
	Unknown     bool // the process has ended within it: it may or may not have counted
}

// A Span is a time.
type Span struct{ From, To int64 }

// A Life is one process.
type Life struct {
	Worker, Life int
	Born, Died   int64
	Dying        int64 // before it was ended
	Stalls       []Span
	Bye          bool   // it has ended by itself
	Remains      string // what it has left behind
	End          string // how it has ended
}

// A Fault is a harm that was done.
type Fault struct {
	Span
	Nemesis string
	Worker  int
	Step    int64    // of a clock, in nanoseconds
	Role    string   // of the server, "" if it follows no other
	Evicted []string // keys of locks that the server has evicted
	Touched uint64   // pieces of what passes between the worker and the store
}

// Matters reports whether a fault can have had an effect on what is granted: it has not
// if the server that it harmed only follows, or watches, the one that does so.
func (f Fault) Matters() bool { return f.Role == "" || f.Role == history.Primary }

// An Effect is that an effect began under a lock, or that its result was had.
type Effect struct {
	Who   Who
	Key   string
	Token uint64
	Value uint64
	At    int64
}

// A Run is all that a run has left.
type Run struct {
	Holds    []*Hold
	Accesses []*Access
	Lives    []*Life
	Faults   []Fault
	Effects  []Effect
	Results  []Effect
	Failures []string // of registers, one for each process that has met with one
}

// A Promise is what a check looks at.
type Promise string

// The promises.
const (
	Exclusive Promise = "exclusion" // no two holders by the store's own account
	Fenced    Promise = "fence"     // no token is accepted after a larger one
	Growing   Promise = "tokens"    // each grant has a larger token
	Told      Promise = "told"      // a holder knows of its loss before the next grant
	Kept      Promise = "kept"      // a lock is not lost that could be renewed
	Lively    Promise = "progress"  // a key that is free is had by whoever waits
	Single    Promise = "once"      // no effect runs again once its result is known
	Tidy      Promise = "tidy"      // nothing is left at the end
)

// Promises returns all promises, in order.
func Promises() []Promise {
	return []Promise{Exclusive, Fenced, Growing, Told, Kept, Lively, Single, Tidy}
}

// A Violation is a promise that was not kept.
type Violation struct {
	Check Promise `json:"check"`
	Key   string  `json:"key,omitempty"`
	At    int64   `json:"at"` // nanoseconds, by the clock of the history; 0 if it is no moment
	Text  string  `json:"text"`
	View  string  `json:"-"` // a page of Porcupine's, of what is not linearizable

	// Reach is up to when a fault has to have had an effect in order to have led to
	// this; 0 means At. A lock that the store has confirmed since stands in spite of
	// the fault, so of locks this is the first of their deadlines.
	Reach int64 `json:"-"`

	// Unproved says that nobody knows: it is no violation, and no proof either.
	Unproved bool `json:"-"`

	// Given is a promise on which this one rests, "" for none.
	Given Promise `json:"-"`

	// Joined says that it is about the token of a reader, which may be that of others.
	Joined bool `json:"-"`
}

// Overlaps reports whether two spans have a moment in common.
func (s Span) Overlaps(o Span) bool { return s.From < o.To && o.From < s.To }

func (w Who) String() string { return fmt.Sprintf("worker %d.%d/%d", w.Worker, w.Life, w.Client) }

// life returns a process, nil if it is unknown.
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

// granted returns the holds of each key that were granted, in order of time. Those
// that were lost before their holders knew of them are left out: nobody can tell
// when they were granted.
func (r *Run) granted() map[string][]*Hold {
	keys := byKey(r.Holds, func(h *Hold) string { return h.Key })
	for key, all := range keys {
		all = slices.DeleteFunc(all, func(h *Hold) bool { return h.Got == Never || h.Late })
		slices.SortFunc(all, func(a, b *Hold) int { return cmp.Compare(a.Got, b.Got) })
		keys[key] = all
	}
	return keys
}
