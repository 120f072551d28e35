//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	childprocess "github.com/holdfast-go/holdfast/internal/child"
)

// A launched command runs while its script goes on. If the store has not answered the command,
// the command is started again: nothing has been done then.
type launched struct {
	fresh exec.Cmd // not started
	name  string   // of its files, without .out and .err
	ended chan struct{}
	err   error // once ended

	mu   sync.Mutex
	cmd  *exec.Cmd
	over bool // the script has ended
}

func started(ts *testscript.TestScript, name string) *launched {
	l := ts.Value("launched").(map[string]*launched)[name]
	need(ts, l != nil, "launch NAME COMMAND...")
	return l
}

func launch(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 2, "launch NAME COMMAND...")
	l := &launched{fresh: *command(ts, args[1:]), name: ts.MkAbs(args[0]), ended: make(chan struct{})}
	ts.Check(l.start())
	ts.Value("launched").(map[string]*launched)[args[0]] = l
	go l.wait()
	ts.Defer(func() {
		l.mu.Lock()
		l.over = true
		l.cmd.Process.Kill()
		l.mu.Unlock()
		<-l.ended
	})
}

func (l *launched) start() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return errors.New("the script has ended")
	}
	stdout, err := os.Create(l.name + ".out")
	if err != nil {
		return err
	}
	defer stdout.Close()
	stderr, err := os.Create(l.name + ".err")
	if err != nil {
		return err
	}
	defer stderr.Close()
	cmd := l.fresh
	cmd.Stdout, cmd.Stderr = stdout, stderr
	defer heed()()
	if err := cmd.Start(); err != nil {
		return err
	}
	l.cmd = &cmd
	return nil
}

// wait waits for the end of the command, and starts it again as long as insist says so.
func (l *launched) wait() {
	defer close(l.ended)
	again := false
	l.err = insist(func() error {
		if again {
			if err := l.start(); err != nil {
				return err
			}
		}
		again = true
		return l.cmd.Wait()
	})
}

// heed lets the commands that are started before the function is called obey
// ^C and SIGHUP, also if the tests run in the background of a script or under nohup,
// and ignore them.
func heed() (done func()) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	return func() { signal.Stop(interrupts) }
}

func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "signal NAME SIGNAL")
	sig, ok := signals[args[1]]
	need(ts, ok, "signal NAME SIGNAL")
	l := started(ts, args[0])
	l.mu.Lock()
	defer l.mu.Unlock()
	if sig == syscall.SIGSTOP {
		ts.Check(childprocess.Freeze(l.cmd.Process)) // On a busy machine the process may run on for a while after the signal.
		return
	}
	if err := l.cmd.Process.Signal(sig); !errors.Is(err, os.ErrProcessDone) { // finish says how it ended
		ts.Check(err)
	}
}

func finish(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 2, "finish NAME CODE|SIGNAL")
	l := started(ts, args[0])
	select {
	case <-l.ended:
	case <-time.After(patient):
		ts.Fatalf("%s did not end", args[0])
	}
	if exit := (*exec.ExitError)(nil); l.err != nil && !errors.As(l.err, &exit) {
		ts.Fatalf("%s: %v", args[0], l.err)
	}
	got := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if sig, ok := signals[args[1]]; ok && got.Signaled() && got.Signal() == sig || !ok && got.ExitStatus() == number(ts, args[1]) {
		return
	}
	ts.Fatalf("%s ended with %v, want %s\n%s", args[0], l.cmd.ProcessState, args[1], ts.ReadFile(args[0]+".err"))
}
