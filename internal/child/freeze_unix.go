//go:build unix

package child

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Freeze stops a child process by SIGSTOP, and returns when none of its threads runs.
func Freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("wait for its stop: %w", err)
		case !status.Stopped():
			return errors.New("ended instead of being stopped")
		}
		return nil
	}
}
