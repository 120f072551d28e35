package filelock

import (
	"errors"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/safefile"
)

const (
	errSharingViolation = syscall.Errno(32)
	errDeletePending    = syscall.Errno(303)
)

// readAt reads up to len(p) bytes, and fewer at the end of a file.
func readAt(h safefile.Handle, p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		var got uint32
		err := syscall.ReadFile(syscall.Handle(h), p[n:], &got, position(offset+int64(n)))
		if errors.Is(err, syscall.ERROR_HANDLE_EOF) || err == nil && got == 0 {
			return n, nil
		}
		if err != nil {
			return n, os.NewSyscallError("ReadFile", err)
		}
		n += int(got)
	}
	return n, nil
}

func writeAt(h safefile.Handle, p []byte, offset int64) error {
	for len(p) > 0 {
		var n uint32
		if err := syscall.WriteFile(syscall.Handle(h), p, &n, position(offset)); err != nil {
			return os.NewSyscallError("WriteFile", err)
		}
		p, offset = p[n:], offset+int64(n)
	}
	return nil
}

func position(offset int64) *syscall.Overlapped {
	return &syscall.Overlapped{Offset: uint32(offset), OffsetHigh: uint32(offset >> 32)}
}

// openLimit returns 0: Windows has no such limit that a program can read.
func openLimit() uint64 { return 0 }

// stale reports whether an error says that an open file was dropped or is about to be
// removed. The caller then opens the file again.
func stale(err error) bool {
	return errors.Is(err, errDeletePending) || errors.Is(err, errSharingViolation)
}

// exhausted reports whether an error says that no more files can be open.
func exhausted(error) bool { return false }
