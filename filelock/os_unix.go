//go:build linux || darwin || freebsd

package filelock

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/safefile"
)

// readAt reads up to len(p) bytes, and fewer at the end of a file.
func readAt(h safefile.Handle, p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		got, err := syscall.Pread(int(h), p[n:], offset+int64(n))
		if err == syscall.EINTR {
			continue
		}
		if err != nil || got == 0 {
			return n, os.NewSyscallError("read", err)
		}
		n += got
	}
	return n, nil
}

func writeAt(h safefile.Handle, p []byte, offset int64) error {
	for len(p) > 0 {
		n, err := syscall.Pwrite(int(h), p, offset)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return os.NewSyscallError("write", err)
		}
		if n == 0 {
			return io.ErrShortWrite
		}
		p, offset = p[n:], offset+int64(n)
	}
	return nil
}

// openLimit returns how many files this process may open, or 0 if unknown.
func openLimit() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur)
}

// stale reports whether an error says that a network file system has dropped an open file.
// The caller then opens the file again.
func stale(err error) bool { return errors.Is(err, syscall.ESTALE) }

// exhausted reports whether an error says that no more files can be open.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
