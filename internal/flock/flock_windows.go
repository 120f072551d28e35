package flock

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

const (
	lockFailImmediately = 1
	lockExclusive       = 2

	errLockViolation = syscall.Errno(33)
)

// lockRange is the locked range of a file: far behind the end, because Windows locks also
// keep other processes from reading and writing the locked range.
func lockRange() *syscall.Overlapped { return &syscall.Overlapped{OffsetHigh: 1 << 30} }

// Try locks a file, or reports that a conflicting lock is held.
func Try(fd uintptr, exclusive bool) (bool, error) {
	flags := uintptr(lockFailImmediately)
	if exclusive {
		flags |= lockExclusive
	}
	ok, _, err := lockFileEx.Call(fd, flags, 0, 1, 0, uintptr(unsafe.Pointer(lockRange())))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, errLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	}
	return false, os.NewSyscallError("LockFileEx", err)
}

// Unlock unlocks a file.
func Unlock(fd uintptr) {
	_, _, _ = unlockFileEx.Call(fd, 0, 1, 0, uintptr(unsafe.Pointer(lockRange())))
}
