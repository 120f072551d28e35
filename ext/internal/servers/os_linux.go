package servers

import (
	"os"
	"os/exec"
	"syscall"
)

// bindToParent lets the kernel kill a server whose test binary has died. It
// does so when the thread that started the server ends.
func bindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// suspend returns when the process has stopped, which is some time after the
// signal was sent. It leaves the news to whoever waits for the end.
func suspend(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	const byPid = 1 // P_PID
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(p.Pid), 0,
			syscall.WSTOPPED|syscall.WNOWAIT, 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return errno
		}
	}
}

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
