//go:build unix && !linux

package servers

import (
	"net"
	"os"
	"os/exec"
	"syscall"
)

func bindToParent(*exec.Cmd) {}

func memory() string { return "" }

func deafen(net.Listener) {}

// Without the /proc of Linux, the processes below p are left alone.

func kill(p *os.Process) error { return p.Kill() }

func suspend(p *os.Process) (settle func(), err error) {
	return func() {}, p.Signal(syscall.SIGSTOP)
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
