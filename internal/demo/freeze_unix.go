//go:build unix

package demo

import (
	"fmt"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/child"
)

const canFreeze = true

// freeze stops the process, and returns when no thread of the process runs.
func (p *process) freeze() error {
	if err := child.Freeze(p.Cmd.Process); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

func (p *process) thaw() error { return p.Cmd.Process.Signal(syscall.SIGCONT) }
