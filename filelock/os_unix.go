//go:build linux || darwin || freebsd

package filelock

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// A handle is an open file. Plain descriptors spare the cost of os.File, which
// is as much as that of a critical section.
type handle int

const noHandle handle = -1

type identity struct{ dev, ino uint64 }

// openFile opens a file for reading and, if write is set, for writing. It
// waits for nothing, follows no link and gives the file to no child process.
func openFile(path string, write bool) (handle, error) {
	mode := syscall.O_RDONLY
	if write {
		mode = syscall.O_RDWR
	}
	return open(path, mode, 0)
}

// createFile makes a file that must not exist, with exactly these permissions.
func createFile(path string, perm fs.FileMode) (handle, error) {
	h, err := open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, uint32(perm))
	if err != nil || perm == private {
		return h, err
	}
	// The umask took something away.
	if err := retry(func() error { return syscall.Fchmod(int(h), uint32(perm)) }); err != nil {
		closeFile(h)
		os.Remove(path)
		return noHandle, &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return h, nil
}

func open(path string, mode int, perm uint32) (handle, error) {
	mode |= syscall.O_CLOEXEC | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	var fd int
	err := retry(func() (err error) {
		fd, err = syscall.Open(path, mode, perm)
		return err
	})
	switch err {
	case nil:
		return handle(fd), nil
	case syscall.ELOOP, syscall.EMLINK: // EMLINK: FreeBSD
		err = errSymlink
	case syscall.ENXIO, syscall.EISDIR: // a socket, a directory
		err = errIrregular
	}
	return noHandle, &fs.PathError{Op: "open", Path: path, Err: err}
}

func closeFile(h handle) { _ = syscall.Close(int(h)) }

// readAt reads what there is, which is less than asked at the end of a file.
func readAt(h handle, p []byte, offset int64) (n int, err error) {
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

func writeAt(h handle, p []byte, offset int64) error {
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

// inspect checks that a file just opened is one that nobody could have put
// there to harm us: a regular file, with no other name, of our own or of root.
func inspect(h handle, path string, anyOwner bool) (identity, error) {
	var st syscall.Stat_t
	if err := fstat(h, &st); err != nil {
		return identity{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	var err error
	switch uid := int(st.Uid); {
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		err = errIrregular
	case st.Nlink > 1:
		err = errHardLink
	case !anyOwner && uid != os.Geteuid() && uid != 0:
		err = foreignOwner(uid)
	default:
		return identityOf(&st), nil
	}
	return identity{}, &fs.PathError{Op: "open", Path: path, Err: err}
}

// stillAt reports whether path leads to the file with this identity.
func (id identity) stillAt(path string) bool {
	var st syscall.Stat_t
	err := retry(func() error { return syscall.Lstat(path, &st) })
	return err == nil && identityOf(&st) == id
}

func identityOf(st *syscall.Stat_t) identity {
	return identity{dev: uint64(st.Dev), ino: st.Ino} //nolint:unconvert // Dev is signed on darwin.
}

func fstat(h handle, st *syscall.Stat_t) error {
	return retry(func() error { return syscall.Fstat(int(h), st) })
}

// stale reports whether an error says that a network file system has forgotten
// an open file, which is then opened again.
func stale(err error) bool { return errors.Is(err, syscall.ESTALE) }

// exhausted reports whether an error says that no more files can be open.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

func retry(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}
