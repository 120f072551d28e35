package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/flock"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/internal/safefile"
)

// A file is the lock file of a key, as one Store uses it. The descriptor stays open
// between calls, since opening costs more than everything else.
type file struct {
	key, name, path string

	pins int           // calls that use or await the file; guarded by Store.mu
	busy chan struct{} // full while a goroutine is in the critical section

	// For the goroutine in the critical section.
	h       safefile.Handle
	id      safefile.Identity
	checked time.Duration // when last seen in place, by lease
}

// A Store keeps between fewOpen and manyOpen lock files open while no call uses the files.
const fewOpen, manyOpen = 128, 4096

// keepOpen is how many lock files a Store keeps open if a process may open limit files. An
// eighth leaves room for other Stores and for the rest of the program.
func keepOpen(limit uint64) int {
	return int(min(max(limit/8, fewOpen), manyOpen))
}

// pin returns the file of a key. The file stays until unpinned.
func (s *Store) pin(key string) (*file, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	f := s.files[key]
	if f == nil {
		name := fileName(key)
		f = &file{key: key, name: name, path: filepath.Join(s.dir, name), busy: make(chan struct{}, 1), h: safefile.None}
		s.files[key] = f
	}
	f.pins++
	return f, nil
}

func (s *Store) unpin(f *file) {
	s.mu.Lock()
	f.pins--
	var spare *file
	switch {
	case f.pins > 0:
	case s.closed || f.h == safefile.None:
		spare = f
	case len(s.files) > s.maxOpen:
		spare = s.idle(f)
	}
	if spare != nil {
		delete(s.files, spare.key)
	}
	s.mu.Unlock()
	if spare != nil {
		spare.close()
	}
}

// idle picks a file not in use, other than f if possible. Any file will do: maps begin
// anywhere, and a wrong choice costs an open.
func (s *Store) idle(f *file) *file {
	for _, other := range s.files {
		if other.pins == 0 && other != f {
			return other
		}
	}
	return f
}

// closeIdle closes the files not in use.
func (s *Store) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeIdleLocked()
}

func (s *Store) closeIdleLocked() {
	for key, f := range s.files {
		if f.pins == 0 {
			delete(s.files, key)
			f.close()
		}
	}
}

// withRoom opens something. If the process has no descriptor left, withRoom closes idle lock
// files, which stay open only for speed, and opens again.
func withRoom[T any](closeIdle func(), open func() (T, error)) (T, error) {
	opened, err := open()
	if exhausted(err) {
		closeIdle()
		return open()
	}
	return opened, err
}

func (f *file) close() {
	if f.h != safefile.None {
		f.h.Close()
		f.h = safefile.None
	}
}

// lock begins the critical section of f: among the goroutines of this Store by busy,
// among processes by the lock of the operating system. lock fails with fs.ErrNotExist if
// there is no file and create is not set, and with the error of ctx if ctx ends first.
// The result is the time at which the section began, which is after everything that
// earlier sections did.
func (s *Store) lock(ctx context.Context, f *file, create bool) (anchor, error) {
	select {
	case f.busy <- struct{}{}:
	default:
		select {
		case f.busy <- struct{}{}:
		case <-ctx.Done():
			return anchor{}, of(f.path, fmt.Errorf("other calls use it: %w", ctx.Err()))
		}
	}
	at, err := s.lockOpen(ctx, f, create)
	if err != nil {
		f.close()
		<-f.busy
	}
	return at, err
}

func (f *file) unlock() {
	if f.h != safefile.None {
		flock.Unlock(uintptr(f.h))
	}
	<-f.busy
}

// lockOpen locks the file at the path, which need not be the open file.
func (s *Store) lockOpen(ctx context.Context, f *file, create bool) (anchor, error) {
	for try := 0; ; try++ {
		if try > 0 {
			if err := rest.For(ctx, time.Duration(min(try, 5))*time.Millisecond); err != nil {
				return anchor{}, of(f.path, err)
			}
		}
		if f.h == safefile.None {
			if err := s.open(ctx, f, create); err != nil {
				return anchor{}, err
			}
		}
		err := f.await(ctx)
		at := s.here()
		if err == nil {
			var there bool
			if there, err = f.inPlace(at.Now); there {
				return at, nil
			}
		}
		if err != nil && !stale(err) {
			return anchor{}, err
		}
		f.close()  // The file was removed,
		s.forget() // and perhaps more.
	}
}

// inPlace reports whether the open file is still at its path. A removal is seen at once, a
// rename within a second.
func (f *file) inPlace(now time.Duration) (bool, error) {
	n, err := f.h.Links()
	switch {
	case err != nil:
		return false, of(f.path, err)
	case n == 0:
		return false, nil
	case n > 1:
		return false, of(f.path, safefile.ErrHardLink)
	}
	if now-f.checked >= recheck {
		if !f.id.StillAt(f.path) {
			return false, nil
		}
		f.checked = now
	}
	return true, nil
}

// await waits for the lock of the operating system by retries: the sections are short, and
// a blocking lock could not be cancelled.
func (f *file) await(ctx context.Context) error {
	const shortest, longest = 50 * time.Microsecond, 4 * time.Millisecond
	pause := shortest
	for try := 0; ; try++ {
		if ok, err := flock.Try(uintptr(f.h), true); ok || err != nil {
			return of(f.path, err)
		}
		if try < 60 {
			yield()
			continue
		}
		if err := rest.For(ctx, pause); err != nil {
			return of(f.path, fmt.Errorf("another process is using it: %w", err))
		}
		pause = min(2*pause, longest)
	}
}

// open opens the file, or creates the file if create is set.
func (s *Store) open(ctx context.Context, f *file, create bool) error {
	for try := 0; ; try++ {
		h, err := safefile.Open(f.path, true)
		if create && errors.Is(err, fs.ErrNotExist) {
			h, err = safefile.Create(f.path, s.opts.Mode)
		}
		switch {
		case err == nil:
			id, err := h.Inspect(f.path, s.opts.Mode != private)
			if err != nil {
				h.Close()
				return advise(err)
			}
			f.h, f.id, f.checked = h, id, s.now().Now
			return nil
		case try >= 8:
			return err
		case exhausted(err):
			s.closeIdle()
		case errors.Is(err, fs.ErrExist): // a different process was faster
		case errors.Is(err, fs.ErrPermission) && s.opts.Mode != private: // the mode is not set yet
		default:
			return err
		}
		if err := rest.For(ctx, time.Duration(try)*time.Millisecond); err != nil {
			return err
		}
	}
}
