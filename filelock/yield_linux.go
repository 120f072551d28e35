package filelock

import (
	"runtime"
	"syscall"
)

// yield lets others run for a moment: the goroutines of this process, and a process that
// may have been paused in the middle of a section.
func yield() {
	runtime.Gosched()
	syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
}
