//go:build !linux

package filelock

import (
	"os"
	"sync"
	"time"
)

// lease is the time by which leases end. The wall clock is the only one here
// that all processes of a machine share, that counts its sleep, and that needs
// no help from outside the standard library.
func lease(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }

var ownClock = sync.OnceValue(func() clockID {
	host, _ := os.Hostname()
	return nameClock("wall", host)
})
