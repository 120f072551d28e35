//go:build unix

package guarding

import (
	"os"
	"syscall"
)

func stop(p *os.Process) error    { return p.Signal(syscall.SIGSTOP) }
func carryOn(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
