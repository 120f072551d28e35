//go:build !unix

package verify

import (
	"errors"
	"os"
)

const canPause = false

func (p *process) pause() error  { return errors.ErrUnsupported }
func (p *process) resume() error { return errors.ErrUnsupported }

// killed reports whether a process was ended from outside: Windows ends a killed process
// with 1, and a process that crashes ends with 2.
func killed(state *os.ProcessState) bool { return state.ExitCode() == 1 }
