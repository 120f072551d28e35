package verify

import (
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
)

// A waiter that waits without a reason is held against the store, but not on a machine
// that has much else to do.
func TestProgressOnABusyMachine(t *testing.T) {
	late := lockOf(1, 1, 30, 31)
	late.Asked = at(1)
	run := &check.Run{Holds: []*check.Hold{late}}
	for load, want := range map[float64]int{0: 1, mostLoad: 1, mostLoad + 1: 0} {
		s := &scene{load: load}
		if got := s.stuck(run, check.Store{Held: 2 * time.Second, Place: 3 * time.Second}); len(got) != want || (s.busy() == "") != (want == 1) {
			t.Errorf("with a load of %v for each processor: %v, %q", load, got, s.busy())
		}
	}
}

// TestLoad runs until that is a load.
func TestLoad(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load is known on Linux only")
	}
	for load() == 0 {
	}
}
