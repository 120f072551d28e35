package boottime

import (
	"math"
	"os"
	"sync"
	"time"
)

// Machine names the clock that [SinceBoot] reads: a single boot of a machine, shared by all
// containers. A time namespace has a different start of time. If the boot is unknown,
// certain is false and the host name stands for the boot; then the same name may come with
// a different start.
func Machine() (name string, certain bool) {
	run, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		host, _ := os.Hostname()
		run = []byte("host " + host)
	}
	space, _ := os.Readlink("/proc/self/ns/time")
	return string(run) + "\x00" + space, err == nil
}

// SinceBoot returns CLOCK_BOOTTIME at t, a recent result of time.Now: how long ago the
// machine was started, including time asleep. All processes of the machine read the same
// time. Mostly SinceBoot makes no system call.
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
	// The two clocks must be read together. After a pause between the readings, read again.
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
