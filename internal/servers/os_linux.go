package servers

import (
	"net"
	"os"
	"os/exec"
	"syscall"
)

// bindToParent makes the kernel kill a server whose test binary has died. The kernel kills
// the server when the thread that started the server ends.
func bindToParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// memory returns a folder in memory with room for the data of all tests, or "".
func memory() string {
	const folder, room = "/dev/shm", 2 << 30
	var st syscall.Statfs_t
	if err := syscall.Statfs(folder, &st); err != nil || st.Bavail < room/uint64(st.Bsize) {
		return ""
	}
	return folder
}

// deafen lets a listener refuse connections, also where a process that is just being
// started has a copy of the listener until the process runs. Without deafen, the system
// would accept connections for the copy, and nobody would answer.
func deafen(l net.Listener) {
	if conn, err := l.(*net.TCPListener).SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { syscall.Shutdown(int(fd), syscall.SHUT_RD) })
	}
}

// kill kills a process and all processes below. kill returns when the processes below are
// gone.
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

// suspend returns when the process and all processes below have stopped, some time after
// the signal. The caller calls settle when the processes run again, or are gone.
func suspend(p *os.Process) (settle func(), err error) {
	below, err := freeze(p)
	if err != nil {
		return nil, err
	}
	return guard(below)
}

// resume resumes the processes below first, and then the process itself.
func resume(p *os.Process) error {
	below, err := descendants(p.Pid)
	if err != nil {
		return err
	}
	signalAll(below, syscall.SIGCONT)
	return p.Signal(syscall.SIGCONT)
}

// freeze stops a process, then all processes below, and returns the processes below. A
// stopped process starts no children, so freeze misses none.
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

// grandchildren waits for the processes to stop, and returns the children of the
// processes.
func grandchildren(pids []int) (all []int, err error) {
	for _, pid := range pids {
		if err := awaitState(pid, "TZ"); err != nil {
			return nil, err
		}
	}
	return children(pids...)
}

// awaitStop waits for the stop, and leaves the status for the caller that waits for the
// end.
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

// signalAll sends a signal to processes. Some of the processes may have ended.
func signalAll(pids []int, signal syscall.Signal) {
	for _, pid := range pids {
		syscall.Kill(pid, signal)
	}
}
