// Package history is what the processes of a run write down, to be judged
// afterwards: one event a line, in JSON, in a file for each process.
//
// Times are those of a clock that all processes of the machine read alike, so
// the events of several processes have one order. Each event is written by one
// call of the system, before what it announces and after what it reports: a
// process that is killed leaves all that it had come to.
package history

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A Kind is what an event tells.
type Kind string

// What workers tell of a lock, in this order. Of a lock on several keys, each
// event but Refused comes once a key.
const (
	Asked    Kind = "asked"    // is about to ask for a lock
	Refused  Kind = "refused"  // has not got it, and why
	Got      Kind = "got"      // has got it, with a token, until then unless renewed; No if it is lost already
	Entered  Kind = "entered"  // has entered it again, with this token
	Held     Kind = "held"     // at that time it was held, as it said afterwards
	Lost     Kind = "lost"     // its context has ended, and why
	Unlocked Kind = "unlocked" // is about to unlock it
	Freed    Kind = "freed"    // Unlock has returned
)

// What workers tell of registers.
const (
	Looks  Kind = "looks"  // is about to read the fenced register, with its token
	Looked Kind = "looked" // has read that value, or was refused
	Writes Kind = "writes" // is about to write a value
	Wrote  Kind = "wrote"  // has written it, or was refused
	Viewed Kind = "viewed" // has read the fenced register without a token; Since is before, At after
)

// What workers tell of effects that are to happen once.
const (
	Effect Kind = "effect" // begins the effect; No if the lock had been lost by then
	Result Kind = "result" // has the result, which is Value
)

// What workers tell of themselves, and the parent of them and of faults.
const (
	Failed Kind = "failed" // one of its registers does not work, and why; told once
	Stall  Kind = "stall"  // has not run from Since to At
	Bye    Kind = "bye"    // has closed its Locker; Note tells what is left of it
	Born   Kind = "born"   // the parent starts the process
	Died   Kind = "died"   // the process has ended, Note tells how
	Fault  Kind = "fault"  // the parent begins to do harm, to Node if that is a server; Mode says which, Note for how long
	Heal   Kind = "heal"   // that harm is over; Note has the keys of locks that it has evicted, Value how much it has touched of what passes between a worker and the store
)

// Roles of servers that follow others, as they tell them. Only what a Primary grants is
// granted.
const (
	Primary  = "primary"
	Replica  = "replica"
	Sentinel = "sentinel"
)

// An Event is one line.
type Event struct {
	At     int64  `json:"at"` // nanoseconds, by Now
	Kind   Kind   `json:"kind"`
	Worker int    `json:"worker"`           // the place, from 0; -1 for none
	Life   int    `json:"life,omitempty"`   // the process in that place, from 1
	Client int    `json:"client,omitempty"` // the goroutine in that process, from 1
	Op     int    `json:"op,omitempty"`     // the operation of that goroutine, from 1; for faults their number
	Key    string `json:"key,omitempty"`
	Mode   string `json:"mode,omitempty"` // of the operation, or the kind of a fault
	Weight int64  `json:"weight,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	Token  uint64 `json:"token,string,omitempty"`
	Until  int64  `json:"until,omitempty"` // 0: no end of its own
	Since  int64  `json:"since,omitempty"`
	Value  uint64 `json:"value,string,omitempty"`
	Seen   uint64 `json:"seen,string,omitempty"` // the value that the written one follows
	Step   int64  `json:"step,omitempty"`        // of a clock, in nanoseconds
	Node   int    `json:"node,omitempty"`        // the server that is harmed, or from which alone a worker is cut off, from 1; of several at once the first
	Role   string `json:"role,omitempty"`        // what it was just before; "" if it follows no other
	No     bool   `json:"no,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Now returns the time of events.
func Now() int64 { return At(time.Now()) }

// At returns a time as events have it. t is recent, or was derived from what is.
func At(t time.Time) int64 { return int64(boottime.SinceBoot(t)) }
