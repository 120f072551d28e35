package natslock

import (
	"testing"
	"time"
)

// The clock of this process may be set, and the machine may sleep: the server then tells its time
// again.
func TestReading(t *testing.T) {
	t.Parallel()
	r := reading{shown: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), at: time.Now()}
	for _, test := range []struct {
		monotonic, wall time.Duration
		fresh           bool
	}{
		{0, 0, true},
		{30 * time.Second, 30*time.Second + 10*time.Millisecond, true},
		{30 * time.Second, time.Hour, false},
		{30 * time.Second, -time.Hour, false},
		{time.Hour, time.Hour, false},
	} {
		now, fresh := r.after(test.monotonic, test.wall)
		if fresh != test.fresh || fresh && !now.Equal(r.shown.Add(test.monotonic)) {
			t.Errorf("after %v and %v: %v, %v", test.monotonic, test.wall, now, fresh)
		}
	}
	if _, fresh := (reading{}).after(0, 0); fresh {
		t.Error("nothing was read")
	}
}
