package sim

import (
	"strings"
	"testing"
	"testing/synctest"
)

// A world of package locktest may last long: its trace stays empty, and has no end.
func TestTraceOfNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, 1, Memory())
		defer w.End()
		lock, err := w.Process("a", nil).Locker.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
		for range 2 * mostEvents {
			w.Trace.add(Event{Step: Fault}, nil)
		}
		if n, m := len(w.Trace.Events()), len(w.Trace.claims); n+m != 0 {
			t.Errorf("the trace keeps %d events and %d claims", n, m)
		}
	})
}

// A world of Run that has no end is found out.
func TestTraceOfRun(t *testing.T) {
	trace := &Trace{seed: 7, most: 3}
	defer func() {
		if p, _ := recover().(string); !strings.HasPrefix(p, "seed 7: endless: 3 events") {
			t.Errorf("panics with %q", p)
		}
	}()
	for range 3 {
		trace.add(Event{Step: Fault}, nil)
	}
}
