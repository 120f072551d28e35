package filelock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A handle is an open file.
type handle syscall.Handle

const noHandle = ^handle(0)

type identity struct{ volume, high, low uint32 }

const (
	errSharingViolation = syscall.Errno(32)
	errDeletePending    = syscall.Errno(303)
)

// openFile opens a file for reading and, if write is set, for writing. It
// follows no link and gives the file to no child process.
func openFile(path string, write bool) (handle, error) {
	return open(path, write, syscall.OPEN_EXISTING)
}

// createFile makes a file that must not exist. Permissions come from the
// directory here.
func createFile(path string, _ fs.FileMode) (handle, error) {
	return open(path, true, syscall.CREATE_NEW)
}

func open(path string, write bool, disposition uint32) (handle, error) {
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
			return handle(h), nil
		}
	}
	return noHandle, &fs.PathError{Op: "open", Path: path, Err: err}
}

// long lets a path pass the old limit of 260 characters.
func long(path string) string {
	if len(path) < 240 || !filepath.IsAbs(path) || path[0] == '\\' {
		return path
	}
	return `\\?\` + path
}

func closeFile(h handle) { _ = syscall.CloseHandle(syscall.Handle(h)) }

// readAt reads what there is, which is less than asked at the end of a file.
func readAt(h handle, p []byte, offset int64) (n int, err error) {
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

func writeAt(h handle, p []byte, offset int64) error {
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

// inspect checks that a file just opened is one that nobody could have put
// there to harm us: a regular file with no other name.
func inspect(h handle, path string, _ bool) (identity, error) {
	info, err := information(h)
	switch {
	case err != nil:
	case info.FileAttributes&syscall.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		err = errSymlink
	case info.FileAttributes&syscall.FILE_ATTRIBUTE_DIRECTORY != 0:
		err = errIrregular
	case info.NumberOfLinks > 1:
		err = errHardLink
	default:
		return identityOf(&info), nil
	}
	return identity{}, &fs.PathError{Op: "open", Path: path, Err: err}
}

// stillAt reports whether path leads to the file with this identity.
func (id identity) stillAt(path string) bool {
	h, err := openFile(path, false)
	if err != nil {
		return false
	}
	defer closeFile(h)
	info, err := information(h)
	return err == nil && identityOf(&info) == id
}

// links returns the number of names that an open file has.
func links(h handle) (uint64, error) {
	info, err := information(h)
	return uint64(info.NumberOfLinks), err
}

func information(h handle) (info syscall.ByHandleFileInformation, err error) {
	err = syscall.GetFileInformationByHandle(syscall.Handle(h), &info)
	return info, os.NewSyscallError("GetFileInformationByHandle", err)
}

func identityOf(info *syscall.ByHandleFileInformation) identity {
	return identity{info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow}
}

// stale reports whether an error says that an open file is forgotten or about
// to go, and is then opened again.
func stale(err error) bool {
	return errors.Is(err, errDeletePending) || errors.Is(err, errSharingViolation)
}

// exhausted reports whether an error says that no more files can be open.
func exhausted(error) bool { return false }
