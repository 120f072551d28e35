//go:build linux || darwin || freebsd

package flock

import (
	"os"
	"syscall"
)

// Try locks a file, or reports that a conflicting lock is held.
func Try(fd uintptr, exclusive bool) (bool, error) {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for {
		switch err := syscall.Flock(int(fd), how|syscall.LOCK_NB); err {
		case nil:
			return true, nil
		case syscall.EWOULDBLOCK:
			return false, nil
		case syscall.EINTR:
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// Unlock unlocks a file.
func Unlock(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) }
