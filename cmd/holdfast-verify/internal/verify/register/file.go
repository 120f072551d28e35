package register

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Files are registers for stores without a way to check tokens. Each register is a list of
// records. A write appends a record by a single system call. The system puts the appends of
// every process in one order. So a process that is stopped or killed at any moment does not
// block the rest.
//
// Whether a record of a fenced register counts follows from the earlier records: a record
// with a token smaller than an earlier token does not count. The writer finds out by
// reading on to its own record.
type files struct {
	folder string
	owner  uint64

	mu   sync.Mutex
	open map[Name]*file
}

// size is the length of a record, with the mark.
const size = 32

func encode(r Record, mark uint64) []byte {
	b := make([]byte, 0, size)
	for _, n := range []uint64{r.Token, r.Value, r.Seen, mark} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

func decode(b []byte) (r Record, mark uint64) {
	n := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	return Record{Token: n(0), Value: n(1), Seen: n(2)}, n(3)
}

func (f *files) path(name Name) string { return filepath.Join(f.folder, name.String()) }

// Create makes nothing: opening a file creates the file.
func (f *files) Create(context.Context, []Name) error { return nil }

func (f *files) Read(_ context.Context, name Name) (State, error) {
	one, err := f.get(name)
	if err != nil {
		return State{}, err
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	err = one.follow()
	return State{Value: one.line.value}, err
}

func (f *files) Append(_ context.Context, name Name, r Record) (State, error) {
	one, err := f.get(name)
	if err != nil {
		return State{}, err
	}
	return one.append(r)
}

func (f *files) Records(_ context.Context, name Name) (all []Record, err error) {
	text, err := os.ReadFile(f.path(name))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err == nil && len(text)%size != 0 {
		err = fmt.Errorf("%s ends in the middle of a record", f.path(name))
	}
	l := line{fenced: name.Fenced}
	for ; len(text) >= size; text = text[size:] {
		if r, _ := decode(text); l.accepts(r) {
			all = append(all, r)
		}
	}
	return all, err
}

func (f *files) Close() (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.open {
		err = errors.Join(err, one.Close())
	}
	return err
}

// get opens a file unless the file is open.
func (f *files) get(name Name) (*file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.open[name]
	if one != nil {
		return one, nil
	}
	opened, err := os.OpenFile(f.path(name), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	one = &file{File: opened, owner: f.owner, line: line{fenced: name.Fenced}, judged: make(map[uint64]State)}
	f.open[name] = one
	return one, nil
}

// A file is a register.
type file struct {
	*os.File
	owner uint64

	mu     sync.Mutex
	read   int64 // how far line has come in the file
	count  uint64
	line   line
	judged map[uint64]State // states after our own records, by mark, until the caller fetches the state
}

func (f *file) append(r Record) (State, error) {
	mark := f.mark()
	if n, err := f.Write(encode(r, mark)); err != nil {
		return State{}, fmt.Errorf("append to a register: %d bytes: %w", n, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.follow(); err != nil {
		return State{}, err
	}
	found, ok := f.judged[mark]
	if !ok {
		return State{}, fmt.Errorf("%s has lost a record", f.Name())
	}
	delete(f.judged, mark)
	return found, nil
}

// mark returns a mark that identifies our own records.
func (f *file) mark() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	return f.owner | f.count
}

// follow reads the records appended since the last call.
func (f *file) follow() error {
	buffer := make([]byte, 64*size)
	for {
		n, err := f.ReadAt(buffer, f.read)
		whole := n - n%size
		for at := 0; at < whole; at += size {
			r, mark := decode(buffer[at : at+size])
			accepted := f.line.accepts(r)
			if mark&^(1<<32-1) == f.owner {
				f.judged[mark] = State{Value: f.line.value, Refused: !accepted}
			}
		}
		f.read += int64(whole)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// A line is the result of the records of a file.
type line struct {
	fenced       bool
	value, token uint64
}

// accepts adds a record, and reports whether the record counts.
func (l *line) accepts(r Record) bool {
	if l.fenced && r.Token < l.token {
		return false
	}
	l.token = r.Token
	if r.Value != 0 {
		l.value = r.Value
	}
	return true
}
