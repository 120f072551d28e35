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

// kill ends a process and all below it. It returns when those below are gone.
func kill(p *os.Process) error {
	below, err := freeze(p)
	if err != nil {
		return err
	}
	signalAll(below, syscall.SIGKILL)
	for _, pid := range below {
		if err := awaitState(pid, "Z"); err != nil {
			return err
		}
	}
	return p.Kill()
}

// suspend returns when the process and all below it have stopped, which is some
// time after the signal was sent. The caller settles it when they run again, or
// are gone.
func suspend(p *os.Process) (settle func(), err error) {
	below, err := freeze(p)
	if err != nil {
		return nil, err
	}
	return guard(below)
}

// resume leaves it to the processes below to go on before the one above looks.
func resume(p *os.Process) error {
	below, err := descendants(p.Pid)
	if err != nil {
		return err
	}
	signalAll(below, syscall.SIGCONT)
	return p.Signal(syscall.SIGCONT)
}

// freeze stops a process, then all below it, and returns those. What has
// stopped starts no others, so that none is missed.
func freeze(p *os.Process) (below []int, err error) {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	if err := awaitStop(p); err != nil {
		return nil, err
	}
	generation, err := children(p.Pid)
	for err == nil && len(generation) > 0 {
		below = append(below, generation...)
		signalAll(generation, syscall.SIGSTOP)
		generation, err = grandchildren(generation)
	}
	return below, err
}

// grandchildren waits for the processes to stop, and returns their children.
func grandchildren(pids []int) (all []int, err error) {
	for _, pid := range pids {
		if err := awaitState(pid, "TZ"); err != nil {
			return nil, err
		}
	}
	return children(pids...)
}

// awaitStop leaves the news of the stop to whoever waits for the end.
func awaitStop(p *os.Process) error {
	const byPid = 1 // P_PID
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(p.Pid), 0,
			syscall.WSTOPPED|syscall.WNOWAIT, 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		case syscall.ECHILD:
			return os.ErrProcessDone
		default:
			return errno
		}
	}
}

// signalAll sends a signal to processes some of which may have ended.
func signalAll(pids []int, signal syscall.Signal) {
	for _, pid := range pids {
		syscall.Kill(pid, signal)
	}
}
