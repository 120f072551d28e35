// Package register has what locks guard in a run: values that many processes read
// and write without any lock of their own, in a thing of the kind that users
// guard: a row, a key of Redis, or a file.
//
// A fenced register refuses tokens smaller than it has seen, in the way that
// docs/guarding.md tells users of: a row by package fence, a key by a script. A
// plain one is the same without that.
//
// Each register keeps a record of all that it has accepted, in order, which it
// writes in one with the value. So what it has let through is there to be read
// afterwards, whatever has become of the processes.
package register

import (
	"context"
	"fmt"
)

// A Name is that of a register.
type Name struct {
	Key    string // of the lock that guards it
	Fenced bool
}

func (n Name) String() string {
	if n.Fenced {
		return n.Key + ".fenced"
	}
	return n.Key + ".plain"
}

// A Record is what one process asks a register to accept: to write a value, or to
// look at it with a token.
type Record struct {
	Token uint64
	Value uint64 // different for each write; 0 for a look
	Seen  uint64 // the value that the writer had read before, 0 for none
}

// A State is what a register was found to be.
type State struct {
	Value   uint64
	Refused bool // the record was not accepted, and nothing has changed
}

// Registers are some in one place. They may be used from many goroutines.
type Registers interface {
	// Create makes what the registers need. It is called once, before all else.
	Create(ctx context.Context, names []Name) error

	// Read returns the value without leaving a record.
	Read(ctx context.Context, name Name) (State, error)

	// Append leaves a record, unless it is refused, and returns the state right
	// after it. After an error it is not known whether it has.
	Append(ctx context.Context, name Name, r Record) (State, error)

	// Records returns all that a register has accepted, in order.
	Records(ctx context.Context, name Name) ([]Record, error)

	Close() error
}

// A Kind is of the things that registers are.
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
	At   string // the path of a folder, for SQLite of a file; else the URL of a server
}

// Open opens the registers of a place. owner tells processes apart.
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
