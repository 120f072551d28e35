package dirwatch

import (
	"bytes"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A Watch tells what happens in a directory, by inotify.
type Watch struct {
	file *os.File
	buf  [16 << 10]byte
}

const (
	moves = syscall.IN_DELETE | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR

	// Closed tells of files that were closed after somebody could write them,
	// and of those that were removed or replaced.
	Closed Events = moves | syscall.IN_CLOSE_WRITE

	// Written tells of each write, and of files that were made, removed or
	// replaced.
	Written Events = moves | syscall.IN_CREATE | syscall.IN_MODIFY
)

// New begins to watch a directory.
func New(dir string, want Events) (*Watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	// The runtime waits for descriptors that do not block, so that close ends
	// a read.
	file := os.NewFile(uintptr(fd), "inotify")
	for {
		if _, err = syscall.InotifyAddWatch(fd, dir, uint32(want)); err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		file.Close()
		return nil, &fs.PathError{Op: "watch", Path: dir, Err: err}
	}
	return &Watch{file: file}, nil
}

// Close ends a Next that waits, with os.ErrClosed.
func (w *Watch) Close() { w.file.Close() }

// Limit ends each Next that waits at that time, or later, with
// os.ErrDeadlineExceeded. The zero time is none.
func (w *Watch) Limit(t time.Time) error { return w.file.SetReadDeadline(t) }

// Next waits for events and returns the names of the files to which something
// has happened, and whether it was more than a write: they were made, removed
// or replaced. The empty name stands for events that were lost.
func (w *Watch) Next() (map[string]bool, error) {
	n, err := w.file.Read(w.buf[:])
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for rest := w.buf[:n]; len(rest) >= syscall.SizeofInotifyEvent; {
		event := (*syscall.InotifyEvent)(unsafe.Pointer(&rest[0]))
		end := syscall.SizeofInotifyEvent + int(event.Len)
		if event.Mask&(syscall.IN_IGNORED|syscall.IN_MOVE_SELF) != 0 {
			return nil, ErrGone
		}
		name, _, _ := bytes.Cut(rest[syscall.SizeofInotifyEvent:end], []byte{0})
		names[string(name)] = names[string(name)] || event.Mask&(syscall.IN_CLOSE_WRITE|syscall.IN_MODIFY) == 0
		rest = rest[end:]
	}
	return names, nil
}
