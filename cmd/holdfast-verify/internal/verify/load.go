package verify

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
)

// mostLoad is the load of the machine, for each processor, up to which progress is judged.
// With more load, servers and disks are as slow as a waiter that nobody wakes.
const mostLoad = 6

// A load is how busy the machine has been during a run: how many threads ran, or waited
// to run, for each processor. Without Linux the load is 0.
type load struct {
	now  float64 // on average over the last seconds
	most float64
}

// loadPeriod is the time between two samples of the load.
const loadPeriod = 200 * time.Millisecond

// sample takes a sample, from the text of /proc/loadavg. The kernel's own average counts
// threads that wait for a disk, too, but takes a minute to rise: many runs are over by then.
func (l *load) sample(loadavg string) {
	var lately, skipped, running float64
	if _, err := fmt.Sscanf(loadavg, "%f %f %f %f/", &lately, &skipped, &skipped, &running); err != nil {
		return
	}
	each := 1 / float64(runtime.NumCPU())
	l.now += (running*each - l.now) * float64(loadPeriod) / float64(5*time.Second)
	l.most = max(l.most, l.now, lately*each)
}

// loadavg returns the text of /proc/loadavg; "" without Linux.
func loadavg() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return string(text)
}

// stuck finds waiters that waited without a reason, unless the machine was too busy to
// tell.
func (s *scene) stuck(run *check.Run, store check.Store) []check.Violation {
	if s.busy() != "" {
		return nil
	}
	return run.Progress(store, grace, slack)
}

// busy returns the reason why progress cannot be judged; "" if progress can be judged.
func (s *scene) busy() string {
	if s.load.most <= mostLoad {
		return ""
	}
	return fmt.Sprintf("the load of the machine was %.0f for each processor: with more than %d nobody can tell a waiter that is stuck from a slow server", s.load.most, mostLoad)
}
