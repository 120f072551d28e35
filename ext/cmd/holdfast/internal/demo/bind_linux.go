package demo

import (
	"os/exec"
	"syscall"
)

// bindToParent lets the kernel end a server whose parent has died. The end of
// its input does so too, but not while it is stopped by SIGSTOP.
func bindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
