package redislock_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/workers"
)

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return countOn(args[0], args[1], args[2]) })
	os.Exit(m.Run())
}

// An event is a line of what a worker has written down.
type event struct {
	What  string        // "grant" of a claim; "hold" or "free" of a lock; "stall"; "error"
	Sent  time.Duration `json:",omitempty"` // grant: when the claim was first asked for; stall: its begin
	Stood time.Duration `json:",omitempty"` // grant: when it was known to be in the queue, 0 if it never was
	At    time.Duration
	Fence uint64 `json:",omitempty"`
	Value int    `json:",omitempty"` // hold: what it is about to write
	Text  string `json:",omitempty"`
}

// A journal keeps what was written to it though its process is killed.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func (j *journal) write(e event) {
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.file.Write(append(line, '\n')); err != nil {
		panic(err)
	}
}

// watchMachine writes down when this process was not run though it had to do. It
// lasts as long as the process.
func (j *journal) watchMachine() {
	const tick, late = 2 * time.Millisecond, 10 * time.Millisecond
	last := sinceBoot()
	for range time.Tick(tick) {
		now := sinceBoot()
		if now-last > tick+late {
			j.write(event{What: "stall", Sent: last + tick, At: now})
		}
		last = now
	}
}

// read returns what a worker has written down. Its last line may be cut off.
func read(t *testing.T, path string) (events []event) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		events = append(events, e)
	}
	return events
}

// A worker is another process.
type worker struct {
	*workers.Worker
	t       *testing.T
	name    string
	journal string
	killed  time.Duration // 0 if it was not
}

// hire starts a worker and returns when it works.
func hire(t *testing.T, name, url, dir string) *worker {
	t.Helper()
	w := &worker{Worker: workers.Start(t, url, dir, name), t: t, name: name, journal: filepath.Join(dir, name)}
	if _, err := bufio.NewReader(w.Out).ReadString('\n'); err != nil {
		t.Fatalf("%s has not begun: %v", name, err)
	}
	return w
}

// kill ends the worker in whatever it is doing.
func (w *worker) kill() {
	_ = w.Process.Kill()
	_ = w.Wait()
	w.killed = sinceBoot()
}

// finish lets the worker end by itself.
func (w *worker) finish() {
	w.t.Helper()
	w.In.Close()
	if err := w.Wait(); err != nil {
		w.t.Errorf("%s: %v", w.name, err)
	}
}
