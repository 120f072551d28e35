package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/register"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

// told returns what a worker has written down.
func told(t *testing.T, path string) (all []history.Event) {
	t.Helper()
	for e, err := range history.Read(path) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// A worker of a release that the run does not know refuses before it does anything.
func TestProtocol(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	in, err := json.Marshal(Job{Protocol: Protocol + 1, History: path})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = Run(t.Context(), strings.NewReader(string(in)+"\n"), &out)
	if err == nil || !strings.Contains(err.Error(), "closer releases") || out.Len() > 0 {
		t.Errorf("the worker says %q, %v", out.String(), err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the history: %v, want none", err)
	}
}

// A register that does not work is told of, once, and nothing is built on what was
// not read.
func TestRegisterFails(t *testing.T) {
	dir := t.TempDir()
	place := register.Place{Kind: register.Files, At: filepath.Join(dir, "none")}
	j := Job{Worker: 1, Life: 2, Registers: place, History: filepath.Join(dir, "history"), Workload: plan.Workload{Keys: 1}}
	w := &worker{Job: j, finish: make(chan struct{})}
	var err error
	if w.history, err = history.Create(j.History, 1, 2); err != nil {
		t.Fatal(err)
	}
	if w.registers, err = place.Open(1); err != nil {
		t.Fatal(err)
	}
	defer w.registers.Close()
	key := j.Workload.Guarded()[0]
	w.locks = must.Get(holdfast.New(memlock.New(), nil))
	defer w.locks.Close()
	lock, err := w.locks.Lock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{worker: w, number: 1, op: 1}
	for range 2 {
		c.hold(plan.Operation{Kind: plan.Exclusive, Keys: []string{key}}, []*holdfast.Lock{lock}, lock.Unlock)
	}
	if err := w.history.Close(); err != nil {
		t.Fatal(err)
	}
	failures := 0
	for _, e := range told(t, j.History) {
		switch e.Kind {
		case history.Failed:
			failures++
			if e.Worker != 1 || e.Life != 2 || !strings.Contains(e.Note, key) {
				t.Errorf("it tells %+v", e)
			}
		case history.Looked, history.Writes, history.Wrote:
			t.Errorf("it goes on: %+v", e)
		}
	}
	if failures != 1 {
		t.Errorf("it tells of %d failures, want 1", failures)
	}
}

// worksFor has a worker work for a while, and returns its history. ended is called in the bubble of
// the worker when the worker has ended.
func worksFor(t *testing.T, length time.Duration, store string, clients int, kind plan.Kind, ended func()) []history.Event {
	t.Helper()
	path := filepath.Join(t.TempDir(), "history")
	synctest.Test(t, func(t *testing.T) {
		in, order := io.Pipe()
		ready, out := io.Pipe()
		end := make(chan error, 1)
		job := Job{
			Protocol: Protocol, Worker: 1, Life: 1, Clients: clients, Store: store, History: path, Registers: register.Place{Kind: register.Files, At: t.TempDir()},
			Effects:  t.TempDir(),
			Workload: plan.Workload{Kinds: []plan.Kind{kind}, Keys: 2, TTL: time.Second},
		}
		go func() { end <- Run(t.Context(), in, out) }()
		if err := json.NewEncoder(order).Encode(job); err != nil {
			t.Fatal(err)
		}
		if _, err := ready.Read(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(order, "go\n"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(length)
		order.Close()
		if err := <-end; err != nil {
			t.Error(err)
		}
		ended()
	})
	return told(t, path)
}

// A held store fails every release.
type heldStore struct{ driver.Store }

func (heldStore) Release(_ context.Context, rs []driver.Release) []error {
	return slices.Repeat([]error{errors.New("no answer")}, len(rs))
}

// A leader whose release has failed may still have the lock, and its history says so. With a second
// client, the lock would pass to that client without a release.
func TestLeaderIsNotReleased(t *testing.T) {
	driver.Register("held", func(context.Context, *url.URL) (driver.Store, error) { return heldStore{memlock.New()}, nil })
	freed := 0
	for _, e := range worksFor(t, 10*time.Second, "held:", 1, plan.Elect, func() {}) {
		if e.Kind == history.Freed {
			if freed++; !strings.Contains(e.Note, "no answer") {
				t.Errorf("freed at %d with the note %q, want that the release failed", e.At, e.Note)
			}
		}
	}
	if freed == 0 {
		t.Error("nobody has led")
	}
}

// A worker leaves nothing behind in its process, and sees what a store leaves: a
// single goroutine too.
func TestLeftGoroutine(t *testing.T) {
	var leave bool
	release := make(chan struct{})
	driver.Register("leaky", func(context.Context, *url.URL) (driver.Store, error) {
		if leave {
			release = make(chan struct{})
			go func() { <-release }()
		}
		return memlock.New(), nil
	})
	for _, leave = range []bool{false, true} {
		all := worksFor(t, time.Second, "leaky:", 2, plan.Exclusive, func() {
			if leave {
				close(release)
			}
		})
		bye := all[len(all)-1]
		if want := map[bool]string{true: "1 goroutines more than before"}[leave]; bye.Kind != history.Bye || bye.Note != want {
			t.Errorf("if one is left (%v), the end is %s %q, want %q", leave, bye.Kind, bye.Note, want)
		}
	}
}

// A worker may start while its store is away, however long that is with its TTL.
func TestBounds(t *testing.T) {
	for _, ttl := range []time.Duration{500 * time.Millisecond, 2 * time.Second, time.Minute} {
		var all []plan.Fault
		for _, n := range plan.Nemeses() {
			f := plan.Faults{Seed: 1, Nemeses: []plan.Nemesis{n}, Workers: 2, Nodes: 1, TTL: ttl, Length: 100 * ttl}
			all = append(all, f.Schedule()...)
		}
		for _, f := range all {
			if f.For > plan.Longest(ttl) {
				t.Errorf("%s lasts %v with a TTL of %v", f.Nemesis, f.For, ttl)
			}
		}
		if start, stop := StartTime(ttl), StopTime(ttl); start < plan.Longest(ttl)+openTime || stop < start+3*ttl {
			t.Errorf("with a TTL of %v a worker has %v to start and %v to end", ttl, start, stop)
		}
	}
}
