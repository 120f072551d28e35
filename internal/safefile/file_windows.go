package safefile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A Handle is an open file.
type Handle syscall.Handle

// None is no open file.
const None = ^Handle(0)

// An Identity distinguishes a file from all other files.
type Identity struct{ volume, high, low uint32 }

// Open opens a file for reading and, if write is set, for writing. Open follows no
// link and gives the file to no child process.
func Open(path string, write bool) (Handle, error) {
	return open(path, write, syscall.OPEN_EXISTING)
}

// Create makes a file that must not exist. Permissions come from the directory
// here.
func Create(path string, _ fs.FileMode) (Handle, error) {
	return open(path, true, syscall.CREATE_NEW)
}

func open(path string, write bool, disposition uint32) (Handle, error) {
	access := uint32(syscall.GENERIC_READ)
	if write {
		access |= syscall.GENERIC_WRITE
	}
	name, err := syscall.UTF16PtrFromString(long(path))
	if err == nil {
		var h syscall.Handle
		h, err = syscall.CreateFile(name, access,
			syscall.FILE_SHARE_READ|syscall.FILE_SHARE_WRITE|syscall.FILE_SHARE_DELETE, nil,
			disposition, syscall.FILE_ATTRIBUTE_NORMAL|syscall.FILE_FLAG_OPEN_REPARSE_POINT, 0)
		if err == nil {
			return Handle(h), nil
		}
	}
	return None, failed("open", path, err)
}

// long lets a path pass the old limit of 260 characters.
func long(path string) string {
	if len(path) < 240 || !filepath.IsAbs(path) || path[0] == '\\' {
		return path
	}
	return `\\?\` + path
}

// Close closes the file.
func (h Handle) Close() { _ = syscall.CloseHandle(syscall.Handle(h)) }

// Inspect checks that no other user could have planted the file that was just opened: the
// file must be regular, with a single name. Inspect ignores the owner on Windows.
func (h Handle) Inspect(path string, _ bool) (Identity, error) {
	info, err := information(h)
	switch {
	case err != nil:
	case info.FileAttributes&syscall.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		err = ErrSymlink
	case info.FileAttributes&syscall.FILE_ATTRIBUTE_DIRECTORY != 0:
		err = ErrIrregular
	case info.NumberOfLinks > 1:
		err = ErrHardLink
	default:
		return identityOf(&info), nil
	}
	return Identity{}, failed("open", path, err)
}

// Owner returns nil: permissions come from the directory on Windows.
func Owner(string, fs.FileInfo) error { return nil }

// StillAt reports whether path leads to the file with this identity.
func (id Identity) StillAt(path string) bool {
	h, err := Open(path, false)
	if err != nil {
		return false
	}
	defer h.Close()
	info, err := information(h)
	return err == nil && identityOf(&info) == id
}

// Links returns the number of names that an open file has.
func (h Handle) Links() (uint64, error) {
	info, err := information(h)
	return uint64(info.NumberOfLinks), err
}

func information(h Handle) (info syscall.ByHandleFileInformation, err error) {
	err = syscall.GetFileInformationByHandle(syscall.Handle(h), &info)
	return info, os.NewSyscallError("GetFileInformationByHandle", err)
}

func identityOf(info *syscall.ByHandleFileInformation) Identity {
	return Identity{info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow}
}
