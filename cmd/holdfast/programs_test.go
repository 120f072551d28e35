//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/internal/must"
)

// signals are those that scripts can send and workers can be sent.
var signals = map[string]syscall.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "QUIT": syscall.SIGQUIT, "TERM": syscall.SIGTERM,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "WINCH": syscall.SIGWINCH,
	"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "TSTP": syscall.SIGTSTP,
}

// commands are the programs that tests start, all of them this one.
var commands = map[string]func(){
	"holdfast": main,
	"worker":   worker,
	"seize":    seize,
	"ailing":   ailing,
	"hasty":    hasty,
}

// worker is a command for holdfast to run:
//
//	worker LOG [SIGNAL=CODE...]
//
// It writes "ready PID" and then the name of each signal that it gets into LOG,
// a line each, and ends with CODE at a SIGNAL. Nothing else ends it but KILL.
func worker() {
	log, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	names := make(map[os.Signal]string)
	got := make(chan os.Signal, 16)
	for name, s := range signals {
		names[s] = name
		if s != syscall.SIGKILL && s != syscall.SIGSTOP && s != syscall.SIGTSTP {
			signal.Notify(got, s)
		}
	}
	codes := make(map[string]int)
	for _, arg := range os.Args[2:] {
		name, code, _ := strings.Cut(arg, "=")
		if codes[name], err = strconv.Atoi(code); err != nil {
			panic(err)
		}
	}
	fmt.Fprintln(log, "ready", os.Getpid())
	for s := range got {
		fmt.Fprintln(log, names[s])
		if code, ends := codes[names[s]]; ends {
			os.Exit(code)
		}
	}
}

// seize makes file locks fail to answer, as a hanging store would: it takes
// the kernel's lock on the files of all keys of a folder, writes "seized" to stdout, and
// keeps them until it is killed.
//
//	seize DIR
func seize() {
	files, err := os.ReadDir(os.Args[1])
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "lock-") {
			continue // A session is locked as long as its process lives.
		}
		file, err := os.Open(os.Args[1] + "/" + f.Name())
		if err == nil {
			err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		}
		if err != nil {
			panic(err)
		}
		defer file.Close()
	}
	fmt.Println("seized")
	select {}
}

// ailing is holdfast with one more kind of store, ailing:///DIR: files, and an
// engine of whose settings it warns.
func ailing() {
	driver.Register("ailing", func(_ context.Context, u *url.URL) (driver.Store, error) {
		return ill{must.Get(filelock.New(u.Path, nil))}, nil
	})
	main()
}

type ill struct{ *filelock.Store }

var _ driver.Checker = ill{}

func (ill) Check(context.Context) ([]string, error) {
	return []string{"it forgets\nat noon: set forget=never", "it is cold"}, errors.New("that was not all")
}

// hasty is holdfast that says ten times a second what it waits for.
func hasty() {
	rarely = 100 * time.Millisecond
	main()
}
