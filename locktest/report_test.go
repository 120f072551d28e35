package locktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/locktest"
)

// report is a job of the package comment, which works until its context ends.
func report(ctx context.Context, locks *holdfast.Locker) error {
	return locks.Do(ctx, "report", func(ctx context.Context) error {
		for ctx.Err() == nil {
			time.Sleep(time.Second)
		}
		return context.Cause(ctx)
	})
}

func TestReportStopsWithoutItsLock(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		done := make(chan error, 1)
		go func() { done <- report(t.Context(), w.Locker()) }()
		synctest.Wait() // the report is at work
		w.Lose("report")
		if err := <-done; !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("the report has returned %v", err)
		}
	})
}

// A report stops when its lock is lost.
func ExampleRun() {
	// A file of tests needs no main function: "go test" runs TestReportStopsWithoutItsLock.
	test := testing.InternalTest{Name: "TestReportStopsWithoutItsLock", F: TestReportStopsWithoutItsLock}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{test}, nil, nil)
}

// A successor takes over from a process that was cut off, once the TTL of its lock is over,
// and the process stops in time.
func TestReportMovesOn(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		first, second := w.Process("first"), w.Process("second")
		done := make(chan error, 1)
		go func() { done <- report(t.Context(), first.Locker()) }()
		synctest.Wait()
		first.Cut()
		lock, err := second.Locker().Lock(t.Context(), "report")
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Unlock()
		synctest.Wait()
		select {
		case err := <-done:
			if !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("the first has returned %v", err)
			}
		case <-time.After(time.Second):
			t.Error("the first goes on beside its successor")
			<-done
		}
	})
}
