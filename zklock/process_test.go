package zklock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/workers"
)

// workerTTL is that of the lock of another process.
const workerTTL = 2 * time.Second

// holdUntilTold holds a lock until its input ends, and then says what it knows of it.
func holdUntilTold(key, addr string) error {
	lk := must.Get(holdfast.New(must.Get(New([]string{addr}, nil)), &holdfast.Options{TTL: workerTTL}))
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
	*workers.Worker
	out   *bufio.Reader
	token uint64
}

// hire starts a worker and returns when it has the lock.
func hire(t *testing.T, key string) *worker {
	t.Helper()
	w := &worker{Worker: workers.Start(t, key, server.Addr())}
	w.out = bufio.NewReader(w.Out)
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
