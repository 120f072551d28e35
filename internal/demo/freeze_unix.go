//go:build unix

package demo

import (
	"fmt"
	"syscall"
)

const canFreeze = true

// freeze stops the process, and returns when no thread of the process runs.
func (p *process) freeze() error {
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.Cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("%s: wait for its stop: %w", p.name, err)
		case !status.Stopped():
			return fmt.Errorf("%s ended instead of being stopped", p.name)
		}
		return nil
	}
}

func (p *process) thaw() error { return p.Cmd.Process.Signal(syscall.SIGCONT) }
