//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"
)

// A shell that controls jobs lends the terminal to one process group at a
// time: its foreground. The command is in a group of its own, so it stops as
// soon as it reads from the terminal or sets it. Then we lend it the terminal.
// Until then ^C, ^Z and ^\ come to us, and are passed on. A command that never
// asks leaves the terminal to the others of its pipeline, such as a pager.

// A tty is the terminal that controls this process. The nil tty is none.
type tty struct {
	file *os.File
	ours int // our process group
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

// foreground returns the group that has the terminal, 0 if that is unknown.
func (t *tty) foreground() int {
	var group int32
	if t == nil || ioctl(t.file, syscall.TIOCGPGRP, unsafe.Pointer(&group)) != nil {
		return 0
	}
	return int(group)
}

// move gives the terminal to another group if from has it. Those in the
// background may do that only while they ignore SIGTTOU; the Go runtime cannot
// undo that, and we have no other use for it.
func (t *tty) move(from, to int) bool {
	if t == nil || t.foreground() != from {
		return false
	}
	signal.Ignore(syscall.SIGTTOU)
	group := int32(to)
	return ioctl(t.file, syscall.TIOCSPGRP, unsafe.Pointer(&group)) == nil
}

// park deals with a command that has stopped: because it wants the terminal, or
// by ^Z. If it cannot have the terminal now, we stop with it, so that the shell
// sees its job stop. Whoever was stopped by hand stays so, under a lock that is
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

// resume lets a parked command go on, in the foreground if that is ours.
func (c *child) resume() {
	if !c.parked {
		return
	}
	if c.wanted {
		c.tty.move(c.tty.ours, c.pid)
	}
	c.wake()
}

// leave takes the terminal back from a command that has ended. If ^C has ended
// it, we end by the same signal, for a shell that runs us in a script or a loop
// to know that it should end as well. If the command had the terminal, nobody
// in our group has seen the ^C, so all get it.
func (c *child) leave(s syscall.WaitStatus) {
	interrupted := s.Signaled() && s.Signal() == syscall.SIGINT
	if c.tty == nil && interrupted {
		c.tty = openTTY()
	}
	if c.tty == nil {
		return
	}
	to := os.Getpid()
	if c.tty.move(c.pid, c.tty.ours) {
		to = 0 // all of our group
	}
	if interrupted {
		c.onExit = func() {
			signal.Reset(syscall.SIGINT)
			syscall.Kill(to, syscall.SIGINT)
		}
	}
}

// stopGroup stops our group as ^Z does, and returns when it goes on. A group
// that no shell looks after cannot be stopped, and goes on at once. The signal
// is not that of ^Z, because the Go runtime never gives up a handler for that.
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

func isTerminal(f *os.File) bool {
	var size [4]uint16
	return ioctl(f, syscall.TIOCGWINSZ, unsafe.Pointer(&size)) == nil
}

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
