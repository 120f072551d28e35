//go:build unix

package verify

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/check"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/history"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/plan"
	"github.com/holdfast-go/holdfast/cmd/holdfast-verify/internal/verify/worker"
)

// Workers that crash are seen at once, whatever is done to them later.
func TestCrashedWorker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parent.jsonl")
	parent, err := history.Create(path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	start := func(number int, then string) *process {
		c := Config{Command: []string{"sh", "-c", "read job; echo ready; " + then}}
		p, err := c.start(t.Context(), parent, worker.Job{Worker: number, Life: 1})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	crashed, alive, mute, good := start(0, "read go; exit 2"), start(1, "cat; exit 2"), start(2, "kill -9 $$"), start(3, "cat")
	if err := crashed.begin(); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*process{crashed, mute} { // without being asked for it
		if !p.over() {
			t.Fatalf("%s is not seen to have ended", p)
		}
		end := history.Now()
		place := &place{process: p}
		for _, n := range []plan.Nemesis{plan.Pause, plan.WorkerClock} {
			if err := place.suffer(t.Context(), t.Context(), plan.Fault{Nemesis: n, For: time.Millisecond}); err != nil {
				t.Errorf("%s of %s, which is gone: %v", n, p, err)
			}
		}
		p.kill()
		if p.ordered.Load() < end {
			t.Errorf("%s was ordered to end before it did", p)
		}
	}
	alive.kill()
	good.end()
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := check.Read(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"exit status 2", check.Killed, "signal: killed", ""} {
		if got := run.Lives[i].End; got != want {
			t.Errorf("worker %d: %q, want %q", i, got, want)
		}
	}
	if all := run.Left(nil); len(all) != 3 { // the one that was to end has said nothing
		t.Errorf("%v", all)
	}
}

// A worker that does not get ready is an error that says how it has ended. No promise is broken.
func TestWorkerDoesNotStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parent.jsonl")
	parent, err := history.Create(path, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Config{Command: []string{"sh", "-c", "exit 3"}}.start(t.Context(), parent, worker.Job{Worker: 1, Life: 2})
	if want := "worker 1.2 did not start: "; err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
		t.Errorf("%v, want %s...", err, want)
	}
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := check.Read(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	if all := run.Left(nil); len(all) > 0 {
		t.Errorf("left: %v", all)
	}
}
