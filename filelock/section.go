package filelock

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/flock"
)

// A section is a critical section on the lock file of one key: enter reads the record,
// leave writes the changes.
type section struct {
	store *Store
	file  *file
	here  anchor // when the section was entered

	slot slot
	next int // where to write
	page [pageSize]byte
	buf  []byte // what to write

	limit int // of the text, in bytes

	state
	pushed   []push
	notify   bool // other processes have to read the record
	sessions []liveness
}

// A push is a grant to a queued claim.
type push struct {
	book.Push
	session string
}

// A liveness says whether a session lives; a section checks a session once.
type liveness struct {
	session string
	alive   bool
}

var sections = sync.Pool{New: func() any { return new(section) }}

// enter begins a section. It fails with fs.ErrNotExist if the key has no file
// and create is not set.
func (s *Store) enter(ctx context.Context, key string, create bool) (*section, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	f, err := s.pin(key)
	if err != nil {
		return nil, err
	}
	at, err := s.lock(ctx, f, create)
	if create && errors.Is(err, fs.ErrNotExist) {
		// The directory is gone, too.
		s.forget()
		if err = s.ready(ctx); err == nil {
			at, err = s.lock(ctx, f, create)
		}
	}
	if err != nil {
		s.unpin(f)
		return nil, err
	}
	sec := sections.Get().(*section)
	sec.store, sec.file, sec.here, sec.limit = s, f, at, maxText
	if err := sec.load(); err != nil {
		sec.end()
		return nil, of(f.path, err)
	}
	return sec, nil
}

func (sec *section) load() (err error) {
	sec.slot, sec.next, err = readRecord(sec.file.h, sec.file.key, &sec.page)
	if err != nil {
		return err
	}
	return sec.state.load(sec.slot, sec.file.key, sec.here)
}

// leave writes the changes, ends the section, and wakes the waiting claims concerned. Then
// leave withdraws grants to waiters that died in the queue: a waiter that lives need not wait
// for the check.
func (sec *section) leave(ctx context.Context) error {
	err := sec.save()
	sec.pushed = slices.DeleteFunc(sec.pushed, func(p push) bool { return err != nil || sec.held(p.ID) == nil })
	notify := err == nil && (sec.notify || slices.ContainsFunc(sec.pushed, sec.foreign))
	if notify {
		// Only the close of the descriptor notifies the watchers of the directory.
		flock.Unlock(uintptr(sec.file.h))
		sec.file.close()
	}
	store, key, name, pushed := sec.store, sec.file.key, sec.file.name, slices.Clone(sec.pushed)
	sec.end()
	for _, p := range pushed {
		store.watcher.granted(name, p.Push)
	}
	if slices.ContainsFunc(sessionsOf(pushed), func(session string) bool { return !store.alive(session) }) {
		store.withdraw(ctx, key)
	}
	return err
}

// sessionsOf returns the sessions of grants, each once: many readers of one process may be
// granted together, and a check opens a file.
func sessionsOf(pushed []push) (sessions []string) {
	for _, p := range pushed {
		if p.session != "" && !slices.Contains(sessions, p.session) {
			sessions = append(sessions, p.session)
		}
	}
	return sessions
}

// withdraw ends the claims of dead sessions on a key. If withdraw fails, the next refusal of a
// claim ends these claims.
func (s *Store) withdraw(ctx context.Context, key string) {
	sec, err := s.enter(ctx, key, false)
	if err != nil {
		return
	}
	sec.prune()
	_ = sec.leave(ctx)
}

// end gives up the section without writing.
func (sec *section) end() {
	store, f := sec.store, sec.file
	f.unlock()
	store.unpin(f)
	sec.store, sec.file = nil, nil
	sec.pushed, sec.sessions, sec.notify = sec.pushed[:0], sec.sessions[:0], false
	if cap(sec.buf) < 16*pageSize { // a buffer that held a long queue is not worth keeping
		sections.Put(sec)
	}
}

// save writes the state if it has changed.
func (sec *section) save() error {
	sec.buf = sec.encode(append(sec.buf[:0], make([]byte, headerSize)...), sec.here.clock)
	if string(sec.buf[headerSize:]) == string(sec.slot.text) {
		return nil
	}
	if len(sec.buf) > headerSize+sec.limit {
		return errTooLong
	}
	next := slot{seq: sec.slot.seq + 1, written: sec.here.Moment}
	return of(sec.file.path, next.write(sec.file.h, sec.next, sec.buf))
}

// note records the grants of the last call of the book to queued claims.
func (sec *section) note() {
	for _, p := range sec.Pushed {
		sec.pushed = append(sec.pushed, push{p, sec.held(p.ID).Session})
	}
}

// prune ends the claims of dead sessions, and reports whether there were any. Afterwards
// every holder and every waiter is alive.
func (sec *section) prune() bool {
	if !slices.ContainsFunc(sec.Held, sec.dead) && !slices.ContainsFunc(sec.Queue, sec.dead) {
		return false
	}
	sec.Prune(sec.here.Moment, sec.alive)
	sec.note()
	return true
}

func (sec *section) dead(e book.Entry) bool { return e.Session != "" && !sec.alive(e.Session) }

func (sec *section) alive(session string) bool {
	for _, v := range sec.sessions {
		if v.session == session {
			return v.alive
		}
	}
	v := liveness{session, sec.store.alive(session)}
	sec.sessions = append(sec.sessions, v)
	return v.alive
}

func (sec *section) foreign(p push) bool { return !sec.store.isOwn(p.session) }
