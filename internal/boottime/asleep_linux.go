package boottime

import (
	"math"
	"syscall"
	"time"
	"unsafe"
)

const trustsWallClock = false

const clockMonotonic, clockBoottime = 1, 7

// asleep returns how long the machine has been suspended since boot.
func asleep() time.Duration { return between(gettime) }

// between returns how far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC. A process that is
// paused between two readings would mistake the pause for a suspend, and be ahead of other
// processes from then on. So between takes the closest of several readings, and the
// smallest difference that the readings allow.
func between(gettime func(clock uintptr) time.Duration) (ahead time.Duration) {
	const near = 5 * time.Microsecond
	closest := time.Duration(math.MaxInt64)
	for range 8 {
		before := gettime(clockMonotonic)
		boot := gettime(clockBoottime)
		after := gettime(clockMonotonic)
		if after-before < closest {
			closest, ahead = after-before, boot-after
		}
		if closest < near {
			break
		}
	}
	return ahead
}

func gettime(clock uintptr) time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}

// measure never trusts the wall clock: its step was only the reason to measure.
func (d *detector) measure(last *reading, _ time.Duration) time.Duration {
	return max(last.slept, asleep()-d.start)
}
