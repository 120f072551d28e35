package wallclock

import (
	"testing"
	"time"
	"unsafe"
)

// monotonic is how [time.Time] keeps the reading of the clock that only runs.
type monotonic struct {
	_   uint64
	ext int64
}

func TestSetBy(t *testing.T) {
	for by, want := range map[time.Duration]time.Duration{
		0: 0, time.Millisecond: 0, time.Second: time.Second, -time.Second: -time.Second,
	} {
		var got time.Duration
		for range 10 { // A stall between the readings of the two clocks looks like a set clock.
			began := time.Now()
			(*monotonic)(unsafe.Pointer(&began)).ext += int64(by) // The clock that only runs has advanced less.
			if got = SetBy(began).Round(10 * time.Millisecond); got == want {
				break
			}
		}
		if got != want {
			t.Errorf("the clock was set by %v: got %v, want %v", by, got, want)
		}
	}
}
