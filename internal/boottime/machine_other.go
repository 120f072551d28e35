//go:build !linux

package boottime

import (
	"os"
	"time"
)

// Machine names the clock that [SinceBoot] reads. certain is false: it is none
// that starts with the machine.
func Machine() (name string, certain bool) {
	host, _ := os.Hostname()
	return "wall\x00" + host, false
}

// SinceBoot returns the wall clock's time at t. It is the only clock here that
// all processes of a machine share, that counts its sleep, and that needs no
// help from outside the standard library.
func SinceBoot(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }
