//go:build unix

package verify

import "syscall"

const canPause = true

func (p *process) pause() error  { return p.Cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.Cmd.Process.Signal(syscall.SIGCONT) }
