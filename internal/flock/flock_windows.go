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

// lockRange is where a file is locked: far behind its end, because the locks
// here also keep others from reading and writing what they cover.
func lockRange() *syscall.Overlapped { return &syscall.Overlapped{OffsetHigh: 1 << 30} }

// Try locks a file, or reports that another has a lock in the way.
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
