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

func TestSet(t *testing.T) {
	for _, by := range []time.Duration{0, time.Second, -time.Second} {
		began := time.Now()
		(*monotonic)(unsafe.Pointer(&began)).ext -= int64(by)
		if got := Set(began); got != (by != 0) {
			t.Errorf("the clock was set by %v: %t", by, got)
		}
	}
}
