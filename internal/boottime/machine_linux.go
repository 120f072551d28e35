package boottime

import (
	"math"
	"os"
	"sync"
	"time"
)

// Machine names the clock that [SinceBoot] reads: one run of one machine, for
// all its containers together. A time namespace has another start of time.
// certain is false where the run is not known; the name of the host stands for
// it then, and the same name may come with another start.
func Machine() (name string, certain bool) {
	run, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		host, _ := os.Hostname()
		run = []byte("host " + host)
	}
	space, _ := os.Readlink("/proc/self/ns/time")
	return string(run) + "\x00" + space, err == nil
}

// SinceBoot returns what CLOCK_BOOTTIME said at t, a recent result of time.Now:
// how long ago the machine was started, its sleep included. All processes of
// the machine read the same. Mostly it takes no system call.
func SinceBoot(t time.Time) time.Duration {
	m := machine()
	return m.began + m.At(t)
}

type started struct {
	*Clock
	began time.Duration // when the clock was made
}

var machine = sync.OnceValue(func() (m started) {
	m.Clock = New()
	// The two clocks are to be read at once. Who was made to pause between
	// them reads them again.
	closest := time.Duration(math.MaxInt64)
	for range 8 {
		before := m.Now()
		boot := gettime(clockBoottime)
		after := m.Now()
		if after-before < closest {
			closest, m.began = after-before, boot-after
		}
	}
	return m
})
