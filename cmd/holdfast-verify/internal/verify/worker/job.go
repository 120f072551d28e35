// Package worker is a process of a run: the worker takes locks in a store as its plan says,
// works under the locks, and records every event.
//
// A worker ignores lost locks on purpose. The worker goes on to write when its lock is
// lost, like a program whose write is already on the way. So the fence has writes to
// refuse.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rest"
	"github.com/holdfast-go/holdfast/once"
)

// A Job is the instructions of a worker. The parent sends the job on the worker's standard
// input, in a line of JSON. The second line lets the worker begin, further lines set its
// clock, and the end of the input tells the worker to end.
type Job struct {
	Protocol     int // of the parent
	Worker, Life int
	Clients      int    // goroutines
	Store        string // URL
	Clocked      bool   // the store uses a clock that lines set
	Prefix       string // of every key
	History      string // path of the file to make
	Registers    register.Place
	Effects      string // folder
	Workload     plan.Workload
}

// Argument is the argument of holdfast-verify that makes it a worker.
const Argument = "work"

// Protocol is the number of the agreement between the parent and a worker, which may be of
// another release: what a Job means, and what a worker writes into its history.
const Protocol = 1

const (
	// lastWait bounds the waits that continue after the end of the run, besides some TTLs:
	// the locks on the keys are released within moments then, or expire.
	lastWait = 30 * time.Second

	// openTime is how long the store may take to serve a new worker, after the faults of
	// its servers.
	openTime = 40 * time.Second

	// tidyTime is how long goroutines and files may take to go after Close.
	tidyTime = 20 * time.Second
)

// StartTime is how long a worker may take to be ready.
func StartTime(ttl time.Duration) time.Duration { return plan.Longest(ttl) + openTime + 20*time.Second }

// StopTime is how long a worker may take to end by itself: to wait for its last locks, to
// release its locks, which a fault may still delay, and to be tidy.
func StopTime(ttl time.Duration) time.Duration {
	return lastWait + 3*ttl + plan.Longest(ttl) + tidyTime + 4*time.Minute
}

// A worker is the process.
type worker struct {
	Job
	history   *history.Writer
	locks     *holdfast.Locker
	registers register.Registers
	effects   once.Records
	clock     clock
	finish    chan struct{} // closed when no further operation is to begin

	failed sync.Once
}

// fail records that a register does not work. The run proves nothing then, because the
// registers belong to the run.
func (w *worker) fail(err error) {
	w.failed.Do(func() {
		w.history.Add(history.Event{At: history.Now(), Kind: history.Failed, Note: note(err)})
	})
}

// Run is the life of a worker, until in ends.
func Run(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	signal.Ignore(os.Interrupt) // goes to the whole process group; the parent decides
	lines := bufio.NewReader(in)
	w := &worker{finish: make(chan struct{})}
	text, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &w.Job)
	}
	if err != nil {
		return fmt.Errorf("a worker reads its job from the run that starts it: %w", err)
	}
	if w.Protocol != Protocol {
		return fmt.Errorf("the run speaks protocol %d with its workers, and this worker %d: take a run and a worker of closer releases", w.Protocol, Protocol)
	}
	if w.history, err = history.Create(w.History, w.Worker, w.Life); err != nil {
		return err
	}
	begin, files := runtime.NumGoroutine(), openFiles()
	if err := w.open(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	if _, err := lines.ReadString('\n'); err != nil {
		return w.close(begin, files)
	}
	go func() {
		w.clock.obey(lines)
		close(w.finish)
	}()
	w.run(ctx)
	return w.close(begin, files)
}

// open opens the store and the registers. While a fault harms the store, several tries may
// be needed.
func (w *worker) open(ctx context.Context) (err error) {
	w.effects = &once.File{Dir: w.Job.Effects}
	if w.registers, err = w.Job.Registers.Open(uint32(w.Worker)<<20 | uint32(w.Life)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, plan.Longest(w.Workload.TTL)+openTime)
	defer cancel()
	opts := &holdfast.Options{
		Logger: slog.New(slog.DiscardHandler), // losses are in the history
		Prefix: w.Prefix,
		TTL:    w.Workload.TTL,
		Owner:  fmt.Sprintf("worker %d.%d", w.Worker, w.Life),
	}
	for {
		if w.Clocked {
			w.locks, err = w.clocked(ctx, opts)
		} else {
			w.locks, err = holdfast.Open(ctx, w.Store, opts)
		}
		if err == nil || errors.Is(err, driver.ErrURL) || errors.Is(err, driver.ErrInvalid) {
			return err
		}
		if rest.For(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}

// close ends the worker, and records its remains.
func (w *worker) close(goroutines, files int) error {
	err := w.locks.Close()
	if err := w.registers.Close(); err != nil {
		return err
	}
	w.history.Add(history.Event{At: history.Now(), Kind: history.Bye, Note: remains(err, goroutines, files)})
	return w.history.Close()
}

// remains describes what a closed Locker has left behind in its process, "" for nothing.
func remains(closing error, goroutines, files int) string {
	if closing != nil {
		return fmt.Sprintf("close: %v", closing)
	}
	left := func() string {
		if n := runtime.NumGoroutine(); n > goroutines {
			return fmt.Sprintf("%d goroutines more than before", n-goroutines)
		}
		if n := openFiles(); n > files {
			return fmt.Sprintf("%d files or connections more than before", n-files)
		}
		return ""
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(tidyTime); ; {
		if left() == "" {
			return ""
		}
		select {
		case <-tick.C:
		case <-late:
			return left()
		}
	}
}

// openFiles returns how many files and connections the process has, if the system reports
// the number.
func openFiles() int {
	all, _ := os.ReadDir("/proc/self/fd")
	return len(all)
}
