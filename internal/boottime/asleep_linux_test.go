package boottime

import (
	"testing"
	"time"
)

// A process that is stopped between two readings has not slept, nor has its
// machine. To take that for a suspend would set its clock ahead for good, and it
// would take keys from others before their leases have ended.
func TestPauseBetweenReadingsIsNoSleep(t *testing.T) {
	for paused := range 9 { // before the reading of that number, from 1
		var now time.Duration
		readings := 0
		ahead := between(func(clock uintptr) time.Duration {
			if readings++; readings == paused {
				now += time.Hour
			}
			now += 100 * time.Nanosecond
			if clock == clockBoottime {
				return now + time.Minute
			}
			return now
		})
		if off := ahead - time.Minute; off.Abs() > time.Microsecond {
			t.Errorf("stopped before reading %d, a minute asleep is %v", paused, ahead)
		}
	}
}

// Where every reading takes long, what may have been a pause is not counted.
func TestSlowReadingsAreNoSleep(t *testing.T) {
	var now time.Duration
	ahead := between(func(uintptr) time.Duration {
		now += time.Second
		return now
	})
	if ahead > 0 {
		t.Errorf("slow readings count as %v asleep", ahead)
	}
}
