package verify

import (
	"fmt"
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
	for most, want := range map[float64]int{0: 1, mostLoad: 1, mostLoad + 1: 0} {
		s := &scene{load: load{most: most}}
		if got := s.stuck(run, check.Store{Held: 2 * time.Second, Place: 3 * time.Second}); len(got) != want || (s.busy() == "") != (want == 1) {
			t.Errorf("with a load of %v for each processor: %v, %q", most, got, s.busy())
		}
	}
}

func TestLoad(t *testing.T) {
	cpus := runtime.NumCPU()
	calm := fmt.Sprintf("0.50 0.10 0.00 %d/109 16905", cpus)
	busy := fmt.Sprintf("0.50 0.10 0.00 %d/109 16905", 10*cpus)
	disk := fmt.Sprintf("%d.00 0.10 0.00 1/109 16905", 10*cpus)
	for name, test := range map[string]struct {
		during time.Duration
		said   string
		busy   bool
	}{
		"always calm":     {time.Hour, calm, false},
		"a moment":        {time.Second, busy, false},
		"some seconds":    {10 * time.Second, busy, true},
		"a disk":          {loadPeriod, disk, true},
		"another system":  {time.Hour, "", false},
		"another content": {time.Hour, "busy", false},
	} {
		var l load
		for at := time.Duration(0); at < test.during; at += loadPeriod {
			l.sample(test.said)
		}
		l.sample(calm)
		if got := l.most > mostLoad; got != test.busy {
			t.Errorf("%s: busy is %v with a load of %v", name, got, l.most)
		}
	}
}

// The kernel says something that is understood.
func TestLoadOfThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the load is known on Linux only")
	}
	var l load
	for range 1000 { // this test itself runs meanwhile
		l.sample(loadavg())
	}
	if l.most == 0 {
		t.Errorf("no load in %q", loadavg())
	}
}
