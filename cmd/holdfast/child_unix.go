//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// passing are the signals that only concern the command.
var passing = []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}

// lossSignals are the signals that a command can get at a loss of the lock, by name.
var lossSignals = map[string]os.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
}

const lossNames = "HUP, INT, QUIT or TERM"

// A child is a command in its own process group. A single goroutine uses a child.
type child struct {
	pid    int
	news   chan os.Signal // look may have news
	tty    *tty           // nil until the command has stopped for the first time
	wanted bool           // the command has wanted the terminal
	parked bool           // the command has stopped, and resume lets the command go on
	by     os.Signal      // the signal that has ended the command; nil if none has
	lent   bool           // the command had the terminal at its end
}

func start(path string, argv, env []string, signals chan<- os.Signal) (*child, error) {
	c := &child{news: make(chan os.Signal, 1)}
	cli.Listen(signals, passing)
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

// look returns the exit code of the command if the command has ended. park handles a
// command that has stopped.
func (c *child) look() (status int, ended bool) {
	for {
		var s syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &s, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil: // another caller has waited for the command; nothing is known
			return cli.ExitFailed, true
		case pid == 0:
			return 0, false
		case pid != c.pid: // an orphan of the command
		case s.Stopped():
			c.park(s.StopSignal())
		default:
			c.leave()
			if s.Signaled() {
				c.by = s.Signal()
				return cli.ExitSignal + int(s.Signal()), true
			}
			return s.ExitStatus(), true
		}
	}
}

// signal sends a signal to the whole group. If the group has ended already, signal does
// nothing.
func (c *child) signal(sig os.Signal) error {
	err := syscall.Kill(-c.pid, sig.(syscall.Signal))
	if err == syscall.ESRCH {
		return nil
	}
	return err
}

// wake continues a stopped group, so that the group notices the signals sent before.
func (c *child) wake() {
	c.parked = false
	c.signal(syscall.SIGCONT)
}

// gone reports whether no process is left in the group of a command that has ended.
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

// become replaces this program by another program. become returns only on failure.
func become(path string, argv []string) error {
	return notStarted(path, syscall.Exec(path, argv, os.Environ()))
}
