//go:build linux || darwin || freebsd

package safefile

import (
	"io/fs"
	"os"
	"syscall"
)

// A Handle is an open file. Plain descriptors spare the cost of os.File.
type Handle int

// None is no open file.
const None Handle = -1

// An Identity distinguishes a file from all other files.
type Identity struct{ dev, ino uint64 }

// Open opens a file for reading and, if write is set, for writing. Open waits for
// nothing, follows no link and gives the file to no child process.
func Open(path string, write bool) (Handle, error) {
	mode := syscall.O_RDONLY
	if write {
		mode = syscall.O_RDWR
	}
	return open(path, mode, 0)
}

// Create makes a file that must not exist, with exactly these permissions.
func Create(path string, perm fs.FileMode) (Handle, error) {
	h, err := open(path, syscall.O_RDWR|syscall.O_CREAT|syscall.O_EXCL, uint32(perm))
	if err != nil || perm == 0o600 {
		return h, err
	}
	// The umask has removed permissions.
	if err := retry(func() error { return syscall.Fchmod(int(h), uint32(perm)) }); err != nil {
		h.Close()
		os.Remove(path)
		return None, failed("chmod", path, err)
	}
	return h, nil
}

func open(path string, mode int, perm uint32) (Handle, error) {
	mode |= syscall.O_CLOEXEC | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	var fd int
	err := retry(func() (err error) {
		fd, err = syscall.Open(path, mode, perm)
		return err
	})
	switch err {
	case nil:
		return Handle(fd), nil
	case syscall.ELOOP, syscall.EMLINK: // EMLINK: FreeBSD
		err = ErrSymlink
	case syscall.ENXIO, syscall.EISDIR: // a socket, a directory
		err = ErrIrregular
	}
	return None, failed("open", path, err)
}

// Close closes the file.
func (h Handle) Close() { _ = syscall.Close(int(h)) }

// Inspect checks that no other user could have planted the file that was just opened: the
// file must be regular, with a single name, of this user or of root. With anyOwner the
// owner does not matter.
func (h Handle) Inspect(path string, anyOwner bool) (Identity, error) {
	var st syscall.Stat_t
	if err := fstat(h, &st); err != nil {
		return Identity{}, failed("stat", path, err)
	}
	var err error
	switch {
	case st.Mode&syscall.S_IFMT != syscall.S_IFREG:
		err = ErrIrregular
	case st.Nlink > 1:
		err = ErrHardLink
	case !anyOwner && !ours(st.Uid):
		err = &OwnerError{int(st.Uid)}
	default:
		return identityOf(&st), nil
	}
	return Identity{}, failed("open", path, err)
}

// Owner returns an [OwnerError] unless a file belongs to this user or to root. Take
// info from os.Lstat, so that a link counts itself.
func Owner(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && !ours(st.Uid) {
		return failed("open", path, &OwnerError{int(st.Uid)})
	}
	return nil
}

func ours(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() }

// StillAt reports whether path leads to the file with this identity.
func (id Identity) StillAt(path string) bool {
	var st syscall.Stat_t
	err := retry(func() error { return syscall.Lstat(path, &st) })
	return err == nil && identityOf(&st) == id
}

func identityOf(st *syscall.Stat_t) Identity {
	return Identity{dev: uint64(st.Dev), ino: st.Ino} //nolint:unconvert // Dev is signed on darwin.
}

func fstat(h Handle, st *syscall.Stat_t) error {
	return retry(func() error { return syscall.Fstat(int(h), st) })
}

func retry(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}
