package verify

import (
	"fmt"
	"os"
	"runtime"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
)

// mostLoad is the load of the machine, for each processor, up to which progress is judged.
// With more load, servers and disks are as slow as a waiter that nobody wakes.
const mostLoad = 6

// load returns the load of the machine for each processor, over the last minute: how many
// threads run, or wait for a processor or a disk. Without Linux the load is 0.
func load() (each float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &each); err != nil {
		return 0
	}
	return each / float64(runtime.NumCPU())
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
	if s.load <= mostLoad {
		return ""
	}
	return fmt.Sprintf("the load of the machine was %.0f for each processor: with more than %d nobody can tell a waiter that is stuck from a slow server", s.load, mostLoad)
}
