//go:build unix

package verify

import (
	"os"
	"syscall"
)

const canPause = true

func (p *process) pause() error  { return p.Cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.Cmd.Process.Signal(syscall.SIGCONT) }

// killed reports whether a process was ended by kill -9.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
