// Package worker has the processes that lock. Each process serves one side of a store, so
// that no two sides share memory, connections or a garbage collector. A process obeys the
// orders on standard input.
package worker

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/internal/child"
)

// An Order tells a worker what to do.
type Order struct {
	Do         Deed
	Key        string
	OwnKeys    bool // of Crowd: each goroutine has a separate key
	NewKeys    bool // of Crowd: and each lock, too
	Goroutines int  // of Crowd
	Clients    int  // of Gather: how many to open
	Locks      int  // of Lock and Hold: how many keys
	For        time.Duration
	Pace       time.Duration // of Crowd: of the work under a lock, and between two locks
}

// A Deed is a kind of work.
type Deed string

// The kinds of work.
const (
	Ready   Deed = "ready"   // answer
	Gather  Deed = "gather"  // open more clients, one for each goroutine of the next Crowd
	Scatter Deed = "scatter" // close these clients
	Alone   Deed = "alone"   // lock and unlock in one goroutine, for a while
	Crowd   Deed = "crowd"   // lock and unlock in many goroutines, for a while
	Lock    Deed = "lock"    // lock keys at the same time, and report when each key is held
	Unlock  Deed = "unlock"  // unlock each key at some time, and report from when
	Hold    Deed = "hold"    // lock many keys
	Free    Deed = "free"    // unlock the many keys
	Measure Deed = "measure" // report the usage of the process
)

// A Report is the result of an Order.
type Report struct {
	At    []time.Time // when each lock was held, or when the unlock began
	Tally Tally
	Use   Usage
	Lost  int // of Free: locks that had ended earlier
	Err   string
}

const (
	// patience is how long a waiter may wait after the rest have stopped.
	patience = 10 * time.Second

	// endless is the time after which a worker is given up, because the worker hangs in a
	// side that ignores contexts, or does not end.
	endless = 5 * time.Minute
)

// A Task names the side and the store that a worker serves, and the address.
type Task struct {
	Store, Side string
	At          []string
	TTL         time.Duration
}

// argument is the argument that makes this program a worker.
const argument = "work"

// A Worker is a process that carries out orders.
type Worker struct {
	task Task
	*child.Process
	send *gob.Encoder
	recv *gob.Decoder
}

// Start starts a worker, which is this program again, and returns once the worker has
// opened its side.
func Start(t Task) (*Worker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := child.Start(context.Background(), []string{self, argument}, os.Stderr)
	if err != nil {
		return nil, err
	}
	w := &Worker{t, p, gob.NewEncoder(p.In), gob.NewDecoder(p.Out)}
	err = w.send.Encode(t)
	if err == nil {
		_, err = w.Do(Order{Do: Ready})
	}
	if err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// Order gives an order. The caller must read the Report before the next Order.
func (w *Worker) Order(o Order) error { return w.name(w.send.Encode(o)) }

// Report waits until the order is done.
func (w *Worker) Report() (r Report, err error) {
	defer w.killLate().Stop()
	err = w.recv.Decode(&r)
	if err == nil && r.Err != "" {
		err = errors.New(r.Err)
	}
	return r, w.name(err)
}

// Do gives an order and waits until it is done.
func (w *Worker) Do(o Order) (Report, error) {
	if err := w.Order(o); err != nil {
		return Report{}, err
	}
	return w.Report()
}

// Stop ends the process. The process closes its side first.
func (w *Worker) Stop() error {
	_ = w.In.Close()
	defer w.killLate().Stop()
	return w.name(w.Wait())
}

// killLate kills the process after a while.
func (w *Worker) killLate() *time.Timer {
	return time.AfterFunc(endless, func() { _ = w.Cmd.Process.Kill() })
}

// Pid returns the id of the process.
func (w *Worker) Pid() int { return w.Cmd.Process.Pid }

// name adds the name of the worker to an error.
func (w *Worker) name(err error) error {
	if err != nil {
		err = fmt.Errorf("worker of %s, %s: %w", w.task.Store, w.task.Side, err)
	}
	return err
}

// Serve obeys orders until there are no more, if this process was started as a worker.
// worked reports whether the process is a worker.
func Serve() (worked bool, err error) {
	if len(os.Args) != 2 || os.Args[1] != argument {
		return false, nil
	}
	orders, reports := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	var t Task
	if err := orders.Decode(&t); err != nil {
		return true, err
	}
	side, ok := stores.Find(t.Store, t.Side)
	if !ok {
		return true, fmt.Errorf("no store %q has a side %q", t.Store, t.Side)
	}
	slog.SetLogLoggerLevel(slog.LevelError) // a crowd of clients would warn at the same time
	lib, err := side.Open(t.At, t.TTL)
	if err != nil {
		return true, fmt.Errorf("open %s of %s: %w", t.Side, t.Store, err)
	}
	defer lib.Close()
	b := &bench{lib: lib, open: func() (*stores.Library, error) { return side.Open(t.At, t.TTL) }}
	defer b.scatter()
	for {
		var o Order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return true, nil
		} else if err != nil {
			return true, err
		}
		r, err := b.obey(o)
		if err != nil {
			r.Err = err.Error()
		}
		if err := reports.Encode(r); err != nil {
			return true, err
		}
	}
}
