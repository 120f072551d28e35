//go:build unix && !linux

package servers

import (
	"os"
	"os/exec"
	"syscall"
)

func bindToParent(*exec.Cmd) {}

func suspend(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error  { return p.Signal(syscall.SIGCONT) }
