package child

import (
	"os/exec"
	"syscall"
)

// bind lets the kernel kill a process when this process has died. The end of the input also
// ends the process, but not while the process is stopped by SIGSTOP.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
