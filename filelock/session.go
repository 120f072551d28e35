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
)

// A session is the life of a Store, which others can see: a file that stays
// locked until the Store is closed or its process ends, however it ends.
type session struct {
	id      string
	h       handle
	file    identity
	checked atomic.Int64 // when it was last seen in its place, by lease
	before  *session     // whose file was removed; claims may still name it
}

// recheck is how often a Store makes sure that its session, and the lock files
// that it has open, are still in their places.
const recheck = time.Second

func (s *Store) sessionPath(id string) string {
	return filepath.Join(s.dir, sessionPrefix+id)
}

// own returns the id of this Store's session, which begins with the first
// claim. A session whose file somebody has removed is followed by a new one.
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
		if old.file.stillAt(s.sessionPath(old.id)) {
			old.checked.Store(int64(now))
			return old.id, nil
		}
		s.checked.Store(false) // The directory may have gone, too.
	}
	live, err := s.beginSession()
	if err != nil {
		return "", err
	}
	live.before = old
	live.checked.Store(int64(now))
	s.session.Store(live)
	if old != nil {
		closeFile(old.h)
	} else {
		s.background.Go(s.sweep)
	}
	return live.id, nil
}

func (s *Store) beginSession() (*session, error) {
	for {
		var raw [sessionID / 2]byte
		rand.Read(raw[:]) // never fails
		id := hex.EncodeToString(raw[:])
		path := s.sessionPath(id)
		h, err := createFile(path, s.opts.Mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		file, err := inspect(h, path, false)
		if err != nil {
			closeFile(h)
			return nil, err
		}
		free, err := flock.Try(uintptr(h), true)
		if err != nil {
			closeFile(h)
			os.Remove(path)
			return nil, of(path, err)
		}
		if free && file.stillAt(path) {
			return &session{id: id, h: h, file: file}, nil
		}
		// Somebody has taken it for a dead one before it was locked.
		closeFile(h)
	}
}

// forget makes the next call look anew at all that a Store relies on.
func (s *Store) forget() {
	s.checked.Store(false)
	if live := s.session.Load(); live != nil {
		live.checked.Store(0)
	}
}

func (s *Store) endSession() {
	if live := s.session.Load(); live != nil {
		closeFile(live.h)
		os.Remove(s.sessionPath(live.id))
	}
}

// bellSize is the length of the text that others leave in a session's file to
// make its Store look after its claims.
const bellSize = 8

// rung returns what the last of them has left.
func (s *Store) rung() (text [bellSize]byte) {
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

// alive reports whether a session has not ended. It removes the file of one
// that has. When it cannot tell, the session lives: its claims still run out.
func (s *Store) alive(id string) bool {
	if s.isOwn(id) {
		return true
	}
	path := s.sessionPath(id)
	h, err := openFile(path, false)
	if errors.Is(err, fs.ErrNotExist) {
		if !s.deaf.Load() {
			return false
		}
		// A network file system may not have heard of a new file yet. Whoever
		// makes one asks the server.
		h, err = createFile(path, s.opts.Mode)
	}
	if err != nil {
		return true
	}
	defer closeFile(h)
	// Shared, so that two who look at the same time both find it dead.
	if free, err := flock.Try(uintptr(h), false); err != nil || !free {
		return true
	}
	if at, err := inspect(h, path, true); err == nil && at.stillAt(path) {
		os.Remove(path)
	}
	return false
}

// sweep removes what dead sessions have left behind that no claim names.
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
