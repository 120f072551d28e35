package child

import (
	"os/exec"
	"syscall"
)

// bind lets the kernel end a process when this one has died. The end of its
// input can tell it so too, but not while it is stopped by SIGSTOP.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
