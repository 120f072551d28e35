//go:build unix

package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The test binary is also the worker process of benchmarks that need several.
func TestMain(m *testing.M) {
	if name := os.Getenv("HOLDFAST_PEERS_SIDE"); name != "" {
		if err := work(name, strings.Split(os.Getenv("HOLDFAST_PEERS_SERVERS"), ",")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// An order tells a worker what to do.
type order struct {
	Do  string
	Key string
	N   int
	For time.Duration
}

// A report is what comes of it.
type report struct {
	At    time.Time // when a lock was held, or the unlocking of it began
	Tally tally
	Use   usage
	N     int // locks that were lost, or waiters that were never woken
	Err   string
}

// work is a worker: it locks as it is told until there are no more orders.
func work(name string, servers []string) error {
	s, err := sideNamed(name)
	if err != nil {
		return err
	}
	lib, err := s.open(servers...)
	if err != nil {
		return err
	}
	defer lib.close()
	w := &bench{lib: lib}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r report
		if err := w.obey(o, &r); err != nil {
			r.Err = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// A bench is where a worker works.
type bench struct {
	lib    *library
	unlock func() error
	held   []func() error
}

func (w *bench) obey(o order, r *report) (err error) {
	switch o.Do {
	case "crowd":
		r.Tally, err = crowd(w.lib, func(int) string { return o.Key }, o.N, o.For)
	case "ready":
		// the answer is all
	case "lock":
		err = w.lock(o.Key, r)
	case "unlock":
		r.At = time.Now()
		err = w.unlock()
	case "hold":
		w.held, err = hold(w.lib, o.N)
	case "free":
		r.N = free(w.held)
	case "measure":
		r.Use, err = measure()
	default:
		err = fmt.Errorf("nobody knows how to %q", o.Do)
	}
	return err
}

// lock asks again if it is never woken.
func (w *bench) lock(key string, r *report) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		unlock, err := w.lib.lock(ctx, key)
		r.At = time.Now()
		if err == nil {
			w.unlock = func() error {
				defer cancel()
				return unlock()
			}
			return nil
		}
		cancel()
		if ctx.Err() != context.DeadlineExceeded {
			return err
		}
		r.N++
	}
}

// A worker is a process that locks.
type worker struct {
	b   *testing.B
	in  *json.Encoder
	out *json.Decoder
}

func startWorker(b *testing.B, s side, servers ...string) *worker {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "HOLDFAST_PEERS_SIDE="+s.name, "HOLDFAST_PEERS_SERVERS="+strings.Join(servers, ","))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		hung := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer hung.Stop()
		if err := cmd.Wait(); err != nil {
			b.Errorf("worker of %s: %v", s.name, err)
		}
	})
	w := &worker{b, json.NewEncoder(in), json.NewDecoder(out)}
	w.do(order{Do: "ready"})
	return w
}

func (w *worker) order(o order) {
	w.b.Helper()
	if err := w.in.Encode(o); err != nil {
		w.b.Fatal(err)
	}
}

// report waits until the order is done.
func (w *worker) report() (r report) {
	w.b.Helper()
	if err := w.out.Decode(&r); err != nil {
		w.b.Fatal(err)
	}
	if r.Err != "" {
		w.b.Fatal(r.Err)
	}
	return r
}

func (w *worker) do(o order) report {
	w.b.Helper()
	w.order(o)
	return w.report()
}
