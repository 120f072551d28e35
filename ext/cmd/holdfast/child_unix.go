//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// Signals that ask us to end, also while we wait for the lock, and signals
// that only mean something to the command.
var (
	ending  = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	passing = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}
)

// listen sends signals to a channel, but for those that we were started to
// ignore, as by nohup: the command ignores them too.
func listen(to chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

// A child is a command in a process group of its own. One goroutine uses it.
type child struct {
	pid    int
	news   chan os.Signal // look may have something to tell
	tty    *tty           // nil until the command has stopped for the first time
	wanted bool           // the command has wanted the terminal
	parked bool           // it has stopped, and resume lets it go on
	onExit func()         // what is left to do when the lock is free again
}

func start(path string, argv, env []string, signals chan<- os.Signal) (*child, error) {
	c := &child{news: make(chan os.Signal, 1)}
	listen(signals, passing)
	signal.Notify(c.news, syscall.SIGCHLD)
	sys := &syscall.SysProcAttr{Setpgid: true}
	outlive(sys)
	adopt()
	var err error
	c.pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys:   sys,
	})
	if err != nil {
		signal.Stop(c.news)
		return nil, err
	}
	return c, nil
}

// look returns the exit code of the command if it has ended. A command that
// has stopped is dealt with: see park.
func (c *child) look() (status int, ended bool) {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // somebody else has waited for it; nothing is known
			return exitFailed, true
		case pid == 0:
			return 0, false
		case pid != c.pid: // an orphan of the command
		case s.Stopped():
			c.park(s.StopSignal())
		default:
			c.leave(s)
			if s.Signaled() {
				return exitSignal + int(s.Signal()), true
			}
			return s.ExitStatus(), true
		}
	}
}

// signal sends a signal to the whole group. To one that has ended already it
// does nothing.
func (c *child) signal(sig os.Signal) error {
	err := syscall.Kill(-c.pid, sig.(syscall.Signal))
	if err == syscall.ESRCH {
		return nil
	}
	return err
}

// wake lets a stopped group run, so that it notices the signals sent to it.
func (c *child) wake() {
	c.parked = false
	c.signal(syscall.SIGCONT)
}

// gone reports whether nobody is left in the group of a command that has
// ended.
func (c *child) gone() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && err != syscall.EINTR {
			return syscall.Kill(-c.pid, 0) == syscall.ESRCH
		}
	}
}

func (c *child) close() {
	signal.Stop(c.news)
	c.tty.close()
}

func signalNumber(s os.Signal) int { return int(s.(syscall.Signal)) }
