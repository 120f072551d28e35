//go:build !linux

package boottime

import (
	"os"
	"time"
)

// Machine names the clock that [SinceBoot] reads. certain is false: the clock does not
// start with the machine.
func Machine() (name string, certain bool) {
	host, _ := os.Hostname()
	return "wall\x00" + host, false
}

// SinceBoot returns the wall clock's time at t. No other clock on this system is shared by
// all processes of a machine, counts time asleep, and needs no help from outside the
// standard library.
func SinceBoot(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }
