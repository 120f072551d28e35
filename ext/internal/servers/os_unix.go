//go:build unix && !linux

package servers

import (
	"os"
	"os/exec"
	"syscall"
)

func bindToParent(*exec.Cmd) {}

// Without the /proc of Linux, the processes below p are left to themselves.

func kill(p *os.Process) error { return p.Kill() }

func suspend(p *os.Process) (settle func(), err error) {
	return func() {}, p.Signal(syscall.SIGSTOP)
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
