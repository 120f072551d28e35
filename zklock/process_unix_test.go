//go:build unix

package zklock

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// TestProcessIsStopped stops a process that holds a lock until another has it. When
// it goes on, it finds its lock lost at its first look.
func TestProcessIsStopped(t *testing.T) {
	t.Parallel()
	w := hire(t, "process/stopped")
	if err := w.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	l := locked(t, locker(t, holdfast.Options{TTL: workerTTL}, server.Addr()), "process/stopped")
	if l.Fence() <= w.token {
		t.Errorf("the later token is %d, the earlier one %d", l.Fence(), w.token)
	}
	if err := w.In.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	var lost bool
	if _, err := fmt.Fscan(w.out, &lost); err != nil || !lost {
		t.Errorf("on waking it knows that the lock is lost: %t, %v", lost, err)
	}
	if err := w.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
}
