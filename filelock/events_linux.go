package filelock

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

// events tells what happens in a directory, by inotify.
type events struct {
	file *os.File
	buf  [16 << 10]byte
}

// Not IN_MODIFY: it would wake every watcher for every call on any key.
const interesting = syscall.IN_CLOSE_WRITE | syscall.IN_DELETE |
	syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR

var errDirGone = errors.New("the directory is no longer watched")

func listen(dir string) (*events, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	// The runtime waits for descriptors that do not block, so that close ends
	// a read.
	file := os.NewFile(uintptr(fd), "inotify")
	err = retry(func() error {
		_, err := syscall.InotifyAddWatch(fd, dir, interesting)
		return err
	})
	if err != nil {
		file.Close()
		return nil, &fs.PathError{Op: "watch", Path: dir, Err: err}
	}
	return &events{file: file}, nil
}

func (e *events) close() { e.file.Close() }

// next waits for events and returns the names of the files to which something
// has happened, and whether they were also removed or replaced. The empty name
// stands for events that were lost.
func (e *events) next() (map[string]bool, error) {
	n, err := e.file.Read(e.buf[:])
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for rest := e.buf[:n]; len(rest) >= syscall.SizeofInotifyEvent; {
		event := (*syscall.InotifyEvent)(unsafe.Pointer(&rest[0]))
		end := syscall.SizeofInotifyEvent + int(event.Len)
		if event.Mask&(syscall.IN_IGNORED|syscall.IN_MOVE_SELF) != 0 {
			return nil, errDirGone
		}
		name, _, _ := bytes.Cut(rest[syscall.SizeofInotifyEvent:end], []byte{0})
		names[string(name)] = names[string(name)] || event.Mask&syscall.IN_CLOSE_WRITE == 0
		rest = rest[end:]
	}
	return names, nil
}
