package redislock_test

import (
	"syscall"
	"time"
	"unsafe"
)

// sinceBoot is a time that all processes of this machine can compare and that
// nobody can set.
func sinceBoot() time.Duration {
	const clockMonotonic = 1
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic(errno)
	}
	return time.Duration(ts.Nano())
}
