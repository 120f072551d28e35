// Package register has what locks guard in a run: values in files, which many
// processes read and write without any lock of their own.
//
// A file is a list of records. To write is to append one by a single call of
// the system, which puts all appends of all processes in one order. So a
// process that is stopped or killed at any moment stands in nobody's way, and
// what the register has seen, and in which order, is there to be read
// afterwards.
//
// Whether a record counts follows from those before it. In a fenced register a
// record with a token smaller than an earlier one does not: its writer finds
// that out by reading on to its own record.
package register

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"
)

// size is that of a record.
const size = 32

// A Record is what one process has appended. All that it looks at is the file.
type Record struct {
	Token uint64
	Value uint64 // different for each write; 0 for a look with a token
	Seen  uint64 // the value that the writer had read before, 0 for none
	mark  uint64 // tells the writer which records are its own
}

func (r Record) encode() []byte {
	b := make([]byte, 0, size)
	for _, n := range []uint64{r.Token, r.Value, r.Seen, r.mark} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decode(b []byte) Record {
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return Record{Token: n(0), Value: n(1), Seen: n(2), mark: n(3)}
}

// A Register is one value in one file. Its methods may be called from many
// goroutines.
type Register struct {
	file   *os.File
	fenced bool
	owner  uint64

	mu     sync.Mutex
	read   int64 // how far State has come in the file
	count  uint64
	state  State
	judged map[uint64]State // of our own records, by their marks, until asked for
}

// State is what a register has become.
type State struct {
	Value   uint64
	Token   uint64 // the largest
	Refused bool   // the last record does not count
}

// Open opens the register in a file, and makes it if it is not there. owner
// tells processes apart; a fenced register refuses smaller tokens.
func Open(path string, fenced bool, owner uint32) (*Register, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Register{
		file: file, fenced: fenced, owner: uint64(owner) << 32,
		judged: make(map[uint64]State),
	}, nil
}

// Close closes the file.
func (r *Register) Close() error { return r.file.Close() }

// Read returns the value without leaving a record.
func (r *Register) Read() (State, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.follow()
	return r.state, err
}

// Append adds a record and returns what it found: the state right after it. If
// the state is Refused, nothing else has changed.
func (r *Register) Append(record Record) (State, error) {
	record.mark = r.mark()
	if n, err := r.file.Write(record.encode()); err != nil {
		return State{}, fmt.Errorf("append to a register: %d bytes: %w", n, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.follow(); err != nil {
		return State{}, err
	}
	found, ok := r.judged[record.mark]
	if !ok {
		return State{}, fmt.Errorf("%s has lost a record", r.file.Name())
	}
	delete(r.judged, record.mark)
	return found, nil
}

func (r *Register) mark() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	return r.owner | r.count
}

// follow reads what has been appended since.
func (r *Register) follow() error {
	buffer := make([]byte, 64*size)
	for {
		n, err := r.file.ReadAt(buffer, r.read)
		whole := n - n%size
		for at := 0; at < whole; at += size {
			record := decode(buffer[at : at+size])
			r.state = r.state.after(record, r.fenced)
			if record.mark&^(1<<32-1) == r.owner {
				r.judged[record.mark] = r.state
			}
		}
		r.read += int64(whole)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// after is the rule of a register.
func (s State) after(r Record, fenced bool) State {
	if fenced && r.Token < s.Token {
		s.Refused = true
		return s
	}
	s.Refused = false
	s.Token = max(s.Token, r.Token)
	if r.Value != 0 {
		s.Value = r.Value
	}
	return s
}

// Records returns all that a file has, in order.
func Records(path string) (all []Record, err error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err == nil && len(text)%size != 0 {
		err = fmt.Errorf("%s ends in the middle of a record", path)
	}
	for ; len(text) >= size; text = text[size:] {
		all = append(all, decode(text))
	}
	return all, err
}
