// Package register has the data that locks guard in a run: values that many processes read
// and write without further locks. A register is what users guard: a row, a key of Redis,
// or a file.
//
// A fenced register refuses tokens smaller than the largest seen, in the way that
// docs/guarding.md describes: a row by package fence, a key by a script. A plain register
// works the same without the refusal.
//
// A register keeps a record of every accepted access, in order, and writes the record
// atomically with the value. So the accesses can be read afterwards, even if the processes
// have gone.
package register

import (
	"context"
	"fmt"
)

// A Name is the name of a register.
type Name struct {
	Key    string // of the lock that guards the register
	Fenced bool
}

func (n Name) String() string {
	if n.Fenced {
		return n.Key + ".fenced"
	}
	return n.Key + ".plain"
}

// A Record is a request of a process to a register: to write a value, or to look at the
// value with a token.
type Record struct {
	Token uint64
	Value uint64 // different for each write; 0 for a look
	Seen  uint64 // the value that the writer had read before, 0 for none
}

// A State is the state of a register after a request.
type State struct {
	Value   uint64
	Refused bool // the record was not accepted, and nothing has changed
}

// Registers are the registers of a place. Many goroutines may use the registers.
type Registers interface {
	// Create makes what the registers need. The caller calls Create once, first.
	Create(ctx context.Context, names []Name) error

	// Read returns the value without leaving a record.
	Read(ctx context.Context, name Name) (State, error)

	// Append leaves a record, unless the register refuses the record, and returns the state
	// right after it. After an error, the record may or may not be there.
	Append(ctx context.Context, name Name, r Record) (State, error)

	// Records returns every accepted record of a register, in order.
	Records(ctx context.Context, name Name) ([]Record, error)

	Close() error
}

// A Kind is the technical kind of a register.
type Kind string

// The kinds.
const (
	Files    Kind = "files"
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
	MySQL    Kind = "mysql"
	Redis    Kind = "redis"
)

// A Place is where registers are.
type Place struct {
	Kind Kind
	At   string // the path of a folder, or for SQLite of a file; else the URL of a server
}

// Open opens the registers of a place. owner distinguishes processes.
func (p Place) Open(owner uint32) (Registers, error) {
	switch p.Kind {
	case Files:
		return &files{folder: p.At, owner: uint64(owner) << 32, open: make(map[Name]*file)}, nil
	case SQLite, Postgres, MySQL:
		return openRows(p)
	case Redis:
		return openKeys(p.At)
	}
	return nil, fmt.Errorf("there are no registers of the kind %q", p.Kind)
}
