package boottime

import (
	"syscall"
	"time"
	"unsafe"
)

const trustsWallClock = false

const clockMonotonic, clockBoottime = 1, 7

// asleep is how long the machine has been suspended since it was booted.
func asleep() time.Duration {
	mono, boot := gettime(clockMonotonic), gettime(clockBoottime)
	return boot - mono
}

func gettime(clock uintptr) time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}

// measure never trusts the wall clock: it only told that a look may pay.
func (d *detector) measure(last *reading, _ time.Duration) time.Duration {
	return max(last.slept, asleep()-d.start)
}
