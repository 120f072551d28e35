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

// variable is set where the binary has to work, and not to test.
const variable = "HOLDFAST_TEST_WORKER"

// Main works and ends the process, if that is a Worker. In the test itself it
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
	In      io.WriteCloser // what it reads
	Out     io.Reader      // what it writes, until it has ended

	ended chan struct{}
	err   error // how, once it has
}

// Start starts a Worker with arguments for its Main. It is killed when the test ends,
// if it still runs then.
func Start(tb testing.TB, args ...string) *Worker {
	tb.Helper()
	cmd := exec.Command(os.Args[0], args...)
	// The race detector would make each worker wait for a second at its end.
	cmd.Env = append(os.Environ(), variable+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatalf("start a worker: %v", err)
	}
	// That of StdoutPipe would be closed as soon as the worker has ended, whether it
	// has been read or not.
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

// Wait returns once the worker has ended, and how: nil if its work went well. It may
// be called many times.
func (w *Worker) Wait() error {
	<-w.ended
	return w.err
}
