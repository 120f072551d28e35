//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Ending are the signals to end.
var Ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// Listen sends signals to a channel. Signals that the process was started to ignore, as
// by nohup, stay ignored, in child processes too.
func Listen(to chan<- os.Signal, signals []os.Signal) {
	for _, s := range signals {
		if !signal.Ignored(s) {
			signal.Notify(to, s)
		}
	}
}

func signalNumber(s os.Signal) int { return int(s.(syscall.Signal)) }

// endBy ends the process, or the whole process group, by a signal, as the default action
// of the signal would. A shell ends a script or a loop after ^C only if the signal has
// ended the command; any exit code lets the script go on. endBy returns if the signal
// cannot end the process.
func endBy(s os.Signal, group bool) {
	// The Go runtime dumps all goroutines at QUIT. The kernel drops signals that the first
	// process of a container does not handle.
	if s == syscall.SIGQUIT || signal.Ignored(s) || os.Getpid() == 1 {
		return
	}
	to := os.Getpid()
	if group {
		to = 0
	}
	signal.Reset(s)
	syscall.Kill(to, s.(syscall.Signal))
	time.Sleep(10 * time.Second) // another thread receives the signal at any moment
}
