// Package workers runs a test's own binary again, for tests of several processes.
//
//	func TestMain(m *testing.M) {
//		workers.Main(func(args []string) error { return count(args[0]) })
//		os.Exit(m.Run())
//	}
package workers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// variable is set in workers, which work instead of testing.
const variable = "HOLDFAST_TEST_WORKER"

// Main works and ends the process, if the process is a Worker. In the test itself, Main
// returns at once.
func Main(work func(args []string) error) {
	if os.Getenv(variable) == "" {
		return
	}
	if err := work(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A Worker is another process.
type Worker struct {
	Process *os.Process
	In      io.WriteCloser // the worker's input
	Out     io.Reader      // the worker's output, until the worker has ended

	ended chan struct{}
	err   error // the result, once the worker has ended
}

// Start starts a Worker with arguments for its Main. If the worker still runs when the test
// ends, the worker is killed.
func Start(tb testing.TB, args ...string) *Worker {
	tb.Helper()
	return Run(tb, exec.Command(os.Args[0], args...))
}

// Run is Start for a command that runs this program in another way, such as by another user.
func Run(tb testing.TB, cmd *exec.Cmd) *Worker {
	tb.Helper()
	// The race detector would make each worker wait for a second at its end.
	cmd.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatalf("start a worker: %v", err)
	}
	// The pipe of StdoutPipe would be closed as soon as the worker has ended, even if
	// unread output is left.
	out, theirs, err := os.Pipe()
	if err != nil {
		tb.Fatalf("start a worker: %v", err)
	}
	cmd.Stdout = theirs
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		tb.Fatalf("start a worker: %v", err)
	}
	w := &Worker{Process: cmd.Process, In: in, Out: out, ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.err = cmd.Wait()
	}()
	tb.Cleanup(func() {
		_ = w.Process.Kill()
		<-w.ended
		_ = out.Close()
	})
	return w
}

// Wait waits until the worker has ended, and returns its error: nil if the work went well.
// Wait may be called many times.
func (w *Worker) Wait() error {
	<-w.ended
	return w.err
}
