package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// Ending are the signals to end. The console sends Ctrl-C to every process.
var Ending = []os.Signal{os.Interrupt, syscall.SIGTERM}

// Listen sends signals to a channel.
func Listen(to chan<- os.Signal, signals []os.Signal) {
	if len(signals) > 0 {
		signal.Notify(to, signals...)
	}
}

func signalNumber(s os.Signal) int {
	n, _ := s.(syscall.Signal)
	return int(n)
}

func endBy(os.Signal, bool) {}

func isTerminal(f *os.File) bool {
	var mode uint32
	return syscall.GetConsoleMode(syscall.Handle(f.Fd()), &mode) == nil
}
