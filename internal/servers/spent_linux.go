package servers

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// tick is the unit of processor time in /proc, of every system with Linux.
const tick = 10 * time.Millisecond

// Spent returns the processor time of all processes below this one, with that of their
// ended children, but without the processes whose ids are in without.
func Spent(without []int) (all time.Duration, err error) {
	pids, err := descendants(os.Getpid())
	for _, pid := range pids {
		if !slices.Contains(without, pid) {
			all += spent(pid)
		}
	}
	return all, err
}

// spent returns 0 if there is no such process.
func spent(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	var all time.Duration
	for _, field := range fields[11:15] { // utime, stime, cutime and cstime of proc(5)
		var ticks int64
		if _, err := fmt.Sscan(field, &ticks); err == nil {
			all += time.Duration(ticks) * tick
		}
	}
	return all
}
