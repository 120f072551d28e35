//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/cli"
)

// A shell with job control lends the terminal to a single process group at a time, the
// foreground group. The command is in a separate group, so the system stops the command at
// the first read or change of the terminal. Then this process lends the terminal to the
// command. Until then ^C, ^Z and ^\ come to this process, and are passed on. A command that
// never needs the terminal leaves the terminal to the rest of the pipeline, such as a
// pager.

// A tty is the terminal that controls this process; nil if there is no terminal.
type tty struct {
	file *os.File
	ours int // the process group of this process
}

func openTTY() *tty {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	return &tty{file: file, ours: syscall.Getpgrp()}
}

func (t *tty) close() {
	if t != nil {
		t.file.Close()
	}
}

// foreground returns the group that has the terminal, 0 if unknown.
func (t *tty) foreground() int {
	var group int32
	if t == nil || cli.Ioctl(t.file, syscall.TIOCGPGRP, unsafe.Pointer(&group)) != nil {
		return 0
	}
	return int(group)
}

// move gives the terminal to the group to if the group from has the terminal. A background
// process may do so only while ignoring SIGTTOU. The Go runtime cannot undo the ignoring,
// and this process has no use for SIGTTOU.
func (t *tty) move(from, to int) bool {
	if t == nil || t.foreground() != from {
		return false
	}
	signal.Ignore(syscall.SIGTTOU)
	group := int32(to)
	return cli.Ioctl(t.file, syscall.TIOCSPGRP, unsafe.Pointer(&group)) == nil
}

// park handles a command that has stopped: by ^Z, or because the command needs the
// terminal. If the terminal is not available now, this process stops too, so the shell sees
// its job stop. A command that was stopped by hand stays stopped, and the lock is still
// renewed.
func (c *child) park(by syscall.Signal) {
	if c.tty == nil {
		c.tty = openTTY()
	}
	if by == syscall.SIGSTOP || c.tty == nil {
		return
	}
	c.parked = true
	wants := by == syscall.SIGTTIN || by == syscall.SIGTTOU
	c.wanted = c.wanted || wants
	if wants && c.tty.foreground() == c.tty.ours {
		return
	}
	c.tty.move(c.pid, c.tty.ours)
	stopGroup()
}

// resume continues a parked command, in the foreground if this process has the foreground.
func (c *child) resume() {
	if !c.parked {
		return
	}
	if c.wanted {
		c.tty.move(c.tty.ours, c.pid)
	}
	c.wake()
}

// leave takes the terminal back from a command that has ended.
func (c *child) leave() {
	c.lent = c.tty != nil && c.tty.move(c.pid, c.tty.ours)
}

// stopGroup stops the process group of this process as ^Z does, and returns when the
// group continues. A group that no shell controls cannot be stopped, and goes on at once.
// stopGroup does not use the signal of ^Z, because the Go runtime never gives up a
// handler for SIGTSTP.
func stopGroup() {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGCONT)
	defer signal.Stop(again)
	syscall.Kill(0, syscall.SIGTTIN)
	select {
	case <-again:
	case <-time.After(100 * time.Millisecond):
	}
}
