package boottime

import (
	"testing"
	"time"
)

// Each process agrees with the system's clock.
func TestSinceBoot(t *testing.T) {
	for range 3 {
		before := gettime(clockBoottime)
		got := SinceBoot(time.Now())
		if after := gettime(clockBoottime); got < before-time.Millisecond || got > after+time.Millisecond {
			t.Errorf("the machine was started %v ago, CLOCK_BOOTTIME says %v to %v", got, before, after)
		}
	}
	if name, certain := Machine(); !certain || name == "" {
		t.Errorf("the clock is called %q, certain: %v", name, certain)
	}
}
