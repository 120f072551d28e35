package dirwatch

import (
	"bytes"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A Watch reports changes in a directory, by inotify.
type Watch struct {
	file *os.File
	buf  [16 << 10]byte
}

const (
	moves = syscall.IN_DELETE | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR

	// Closed reports files that were open for writing and then closed, and files that were
	// removed or replaced.
	Closed Events = moves | syscall.IN_CLOSE_WRITE

	// Written reports each write, and files that were created, removed or replaced.
	Written Events = moves | syscall.IN_CREATE | syscall.IN_MODIFY
)

// New begins to watch a directory.
func New(dir string, want Events) (*Watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	// The runtime waits for descriptors that do not block, so Close ends a read.
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

// Close ends a waiting Next, with os.ErrClosed.
func (w *Watch) Close() { w.file.Close() }

// Limit ends every Next that waits at t, or later, with os.ErrDeadlineExceeded. The zero
// time means no limit.
func (w *Watch) Limit(t time.Time) error { return w.file.SetReadDeadline(t) }

// Next waits for events and returns the names of the changed files. The value is true if
// the change was more than a write: the file was created, removed or replaced. The empty
// name stands for lost events.
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
