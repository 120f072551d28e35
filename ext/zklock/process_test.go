package zklock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Tests of several processes run this test's own binary again, with the key to lock
// in this variable.
const workerVariable = "HOLDFAST_TEST_WORKER"

// workerTTL is that of the lock of another process.
const workerTTL = 2 * time.Second

func work(key string) {
	if err := holdUntilTold(key, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// holdUntilTold holds a lock until its input ends, and then says what it knows of it.
func holdUntilTold(key, url string) error {
	lk, err := holdfast.Open(context.Background(), url, &holdfast.Options{TTL: workerTTL})
	if err != nil {
		return err
	}
	l, err := lockedWithin(context.Background(), lk, key)
	if err != nil {
		return err
	}
	fmt.Println(l.Fence())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	fmt.Println(errors.Is(l.Err(), holdfast.ErrLost))
	return nil
}

// A worker is another process that holds a lock.
type worker struct {
	*exec.Cmd
	in    io.Closer
	out   *bufio.Reader
	token uint64
}

// hire starts a worker and returns when it has the lock.
func hire(t *testing.T, key string) *worker {
	t.Helper()
	w := &worker{Cmd: exec.CommandContext(t.Context(), os.Args[0], server.URL())}
	w.Env = append(os.Environ(), workerVariable+"="+key, "GORACE=atexit_sleep_ms=0")
	w.Stderr = os.Stderr
	in, err := w.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	w.in, w.out = in, bufio.NewReader(out)
	if _, err := fmt.Fscan(w.out, &w.token); err != nil {
		t.Fatalf("the worker has no lock: %v", err)
	}
	return w
}

// TestProcessDies kills a process that holds a lock. Another has it soon, with a
// larger token.
func TestProcessDies(t *testing.T) {
	t.Parallel()
	w := hire(t, "process/dies")
	if err := w.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = w.Wait() // it was killed
	l := locked(t, locker(t, holdfast.Options{TTL: workerTTL}, server.Addr()), "process/dies")
	if l.Fence() <= w.token {
		t.Errorf("the later token is %d, the earlier one %d", l.Fence(), w.token)
	}
}
