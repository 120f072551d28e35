// Package history is the record that the processes of a run write, to be judged afterwards:
// one event a line, in JSON, in a file for each process.
//
// Times are from a clock that every process of the machine reads alike. So the events of
// several processes have one order. A process writes an event by a single system call. The
// event comes before the step that it announces, and after the step that it reports. So a
// killed process leaves every event up to its end.
package history

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// A Kind is the kind of an event.
type Kind string

// Events of a lock, by workers, in the order of the list. For a lock on several keys, each
// event but Refused comes once a key.
const (
	Asked    Kind = "asked"    // is about to request a lock
	Refused  Kind = "refused"  // has not acquired the lock, and why
	Got      Kind = "got"      // has acquired the lock, with a token, until Until unless renewed; No if the lock is lost already
	Entered  Kind = "entered"  // has entered the lock again, with the token
	Held     Kind = "held"     // the lock was held at the time, as the lock said afterwards
	Lost     Kind = "lost"     // the context of the lock has ended, and why
	Unlocked Kind = "unlocked" // is about to unlock the lock
	Freed    Kind = "freed"    // Unlock has returned
)

// Events of registers, by workers.
const (
	Looks  Kind = "looks"  // is about to read the fenced register, with its token
	Looked Kind = "looked" // has read the value, or was refused
	Writes Kind = "writes" // is about to write a value
	Wrote  Kind = "wrote"  // has written the value, or was refused
	Viewed Kind = "viewed" // has read the fenced register without a token; Since is before, At after
)

// Events of effects that are to happen once, by workers.
const (
	Effect Kind = "effect" // begins the effect; No if the lock had been lost by then
	Result Kind = "result" // has the result in Value
)

// Events of workers, by workers and the parent, and events of faults, by the parent.
const (
	Failed Kind = "failed" // a register does not work, and why; recorded once
	Stall  Kind = "stall"  // has not run from Since to At
	Bye    Kind = "bye"    // has closed its Locker; Note lists the remains
	Born   Kind = "born"   // the parent starts the process
	Died   Kind = "died"   // the process has ended, Note says how
	Fault  Kind = "fault"  // the parent begins a fault, of Node for a server; Mode is the nemesis, Note the duration
	Heal   Kind = "heal"   // the fault is over; Note has the keys of evicted locks, Value the number of touched pieces between a worker and the store
)

// Roles of servers that follow a leader, as the servers report the roles. Only a Primary
// grants locks.
const (
	Primary  = "primary"
	Replica  = "replica"
	Sentinel = "sentinel"
)

// An Event is a line of the history.
type Event struct {
	At     int64  `json:"at"` // nanoseconds, by Now
	Kind   Kind   `json:"kind"`
	Worker int    `json:"worker"`           // the place, from 0; -1 for no place
	Life   int    `json:"life,omitempty"`   // the process in the place, from 1
	Client int    `json:"client,omitempty"` // the goroutine in the process, from 1
	Op     int    `json:"op,omitempty"`     // the operation of the goroutine, from 1; for faults the number of the fault
	Key    string `json:"key,omitempty"`
	Mode   string `json:"mode,omitempty"` // of the operation, or the kind of a fault
	Weight int64  `json:"weight,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	Token  uint64 `json:"token,string,omitempty"`
	Until  int64  `json:"until,omitempty"` // 0: no end of its own
	Since  int64  `json:"since,omitempty"`
	Value  uint64 `json:"value,string,omitempty"`
	Seen   uint64 `json:"seen,string,omitempty"` // the value that the written value follows
	Step   int64  `json:"step,omitempty"`        // of a clock, in nanoseconds
	Node   int    `json:"node,omitempty"`        // the harmed server, or the only server from which a worker is cut off, from 1; the first of several at once
	Role   string `json:"role,omitempty"`        // the role just before; "" if no server follows a leader
	No     bool   `json:"no,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Now returns the time for events.
func Now() int64 { return At(time.Now()) }

// At converts a time to the time of events. t is recent, or derived from a recent time.
func At(t time.Time) int64 { return int64(boottime.SinceBoot(t)) }
