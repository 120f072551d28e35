package filelock

import (
	"math"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/boottime"
)

// lease is the time by which leases end: since the machine was started, its
// sleep included. All processes of the machine read the same.
func lease(t time.Time) time.Duration {
	c := started()
	return c.began + c.At(t)
}

// A machine is CLOCK_BOOTTIME without a system call per reading.
type machine struct {
	*boottime.Clock
	began time.Duration // when the clock was made
}

var started = sync.OnceValue(func() (m machine) {
	m.Clock = boottime.New()
	// The two clocks are to be read at once. Who was made to pause between
	// them reads them again.
	closest := time.Duration(math.MaxInt64)
	for range 8 {
		before := m.Now()
		boot := sinceBoot()
		after := m.Now()
		if after-before < closest {
			closest, m.began = after-before, boot-after
		}
	}
	return m
})

func sinceBoot() time.Duration {
	const clockBoottime = 7
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		panic("filelock: CLOCK_BOOTTIME: " + errno.Error()) // Linux has it since 2.6.39.
	}
	return time.Duration(ts.Nano())
}

// ownClock names one run of one machine, for all its containers together. A
// time namespace has another start of time, and where the run is not known the
// name of the host stands for it.
var ownClock = sync.OnceValue(func() clockID {
	run, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		host, _ := os.Hostname()
		run = []byte("host " + host)
	}
	space, _ := os.Readlink("/proc/self/ns/time")
	return nameClock(string(run), space)
})
