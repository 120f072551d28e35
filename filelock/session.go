package filelock

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/flock"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// A session makes the life of a Store visible to other processes. The session is a file
// that stays locked until the Store is closed or the process ends, whatever the cause.
type session struct {
	id      string
	h       safefile.Handle
	file    safefile.Identity
	checked atomic.Int64 // when last seen in place, by lease
	before  *session     // the session before, whose file was removed; claims may still name it
}

// recheck is how often a Store checks that its session and its open lock files are still in
// place.
const recheck = time.Second

func (s *Store) sessionPath(id string) string {
	return filepath.Join(s.dir, sessionPrefix+id)
}

// own returns the id of this Store's session, which begins with the first claim. If the
// file of a session was removed, own begins a new session.
func (s *Store) own(now time.Duration) (string, error) {
	if live := s.session.Load(); live != nil && now-time.Duration(live.checked.Load()) < recheck {
		return live.id, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errClosed
	}
	old := s.session.Load()
	if old != nil {
		if old.file.StillAt(s.sessionPath(old.id)) {
			old.checked.Store(int64(now))
			return old.id, nil
		}
		s.checked.Store(false) // The directory may be gone, too.
	}
	live, err := s.beginSession()
	if err != nil {
		return "", err
	}
	live.before = old
	live.checked.Store(int64(now))
	s.session.Store(live)
	if old != nil {
		old.h.Close()
	} else {
		s.background.Go(s.sweep)
	}
	return live.id, nil
}

// beginSession begins a session. The caller has locked s.mu.
func (s *Store) beginSession() (*session, error) {
	for {
		var raw [sessionID / 2]byte
		rand.Read(raw[:]) // never fails
		id := hex.EncodeToString(raw[:])
		path := s.sessionPath(id)
		h, err := withRoom(s.closeIdleLocked, func() (safefile.Handle, error) { return safefile.Create(path, s.opts.Mode) })
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		file, err := h.Inspect(path, false)
		if err != nil {
			h.Close()
			return nil, err
		}
		free, err := flock.Try(uintptr(h), true)
		if err != nil {
			h.Close()
			os.Remove(path)
			return nil, of(path, err)
		}
		if free && file.StillAt(path) {
			return &session{id: id, h: h, file: file}, nil
		}
		// A process has taken the new session for dead before it was locked.
		h.Close()
	}
}

// forget makes the next call check the directory and the session again.
func (s *Store) forget() {
	s.checked.Store(false)
	if live := s.session.Load(); live != nil {
		live.checked.Store(0)
	}
}

func (s *Store) endSession() {
	if live := s.session.Load(); live != nil {
		live.h.Close()
		os.Remove(s.sessionPath(live.id))
	}
}

// signalSize is the length of a signal: a text that another process writes into a session's
// file to make the Store check its claims.
const signalSize = 8

// signal returns the signal that was last written into this Store's session file.
func (s *Store) signal() (text [signalSize]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.session.Load(); live != nil && !s.closed {
		_, _ = readAt(live.h, text[:], 0)
	}
	return text
}

func (s *Store) isOwn(id string) bool {
	for live := s.session.Load(); live != nil; live = live.before {
		if live.id == id {
			return true
		}
	}
	return false
}

// alive reports whether a session has not ended, and removes the file of an ended session.
// In doubt the session lives: its claims still expire.
func (s *Store) alive(id string) bool {
	if s.isOwn(id) {
		return true
	}
	path := s.sessionPath(id)
	h, err := withRoom(s.closeIdle, func() (safefile.Handle, error) { return safefile.Open(path, false) })
	if errors.Is(err, fs.ErrNotExist) && s.onNetwork.Load() {
		h, err = s.openOnShare(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	defer h.Close()
	// A shared lock: two concurrent checks both find the session dead.
	if free, err := flock.Try(uintptr(h), false); err != nil || !free {
		return true
	}
	if at, err := h.Inspect(path, true); err == nil && at.StillAt(path) {
		os.Remove(path)
	}
	return false
}

// openOnShare opens a file that a network file system may not show yet: trying to create
// the file asks the server. A concurrent check of the same session may create and remove
// the file meanwhile.
func (s *Store) openOnShare(path string) (h safefile.Handle, err error) {
	for range 100 {
		h, err = safefile.Create(path, s.opts.Mode)
		if !errors.Is(err, fs.ErrExist) {
			return h, err
		}
		h, err = safefile.Open(path, false)
		if !errors.Is(err, fs.ErrNotExist) {
			return h, err
		}
	}
	return safefile.None, errors.New("the file appears and disappears")
}

// sweep removes the files of all dead sessions, including those that no claim names any
// more.
func (s *Store) sweep() {
	dir, err := os.Open(s.dir)
	if err != nil {
		return
	}
	defer dir.Close()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if id, ok := strings.CutPrefix(name, sessionPrefix); ok && isSessionID(id) {
				s.alive(id)
			}
		}
		if err != nil || s.isClosed() {
			return
		}
	}
}
