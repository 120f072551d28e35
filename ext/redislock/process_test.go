package redislock_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Tests of several processes run this test's own binary again.
const workerVariable = "HOLDFAST_TEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) == "" {
		os.Exit(m.Run())
	}
	if err := countOn(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// An event is a line of what a worker has written down.
type event struct {
	What  string        // "grant" of a claim; "hold" or "free" of a lock; "stall"; "error"
	Sent  time.Duration `json:",omitempty"` // grant: when the claim was first asked for; stall: its begin
	Stood time.Duration `json:",omitempty"` // grant: when it was known to be in line, 0 if it never was
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
	t       *testing.T
	name    string
	journal string
	cmd     *exec.Cmd
	stdin   io.Closer
	killed  time.Duration // 0 if it was not
}

// hire starts a worker and returns when it works.
func hire(t *testing.T, name, url, dir string) *worker {
	t.Helper()
	w := &worker{t: t, name: name, journal: filepath.Join(dir, name)}
	w.cmd = exec.Command(os.Args[0], url, dir, name)
	// The race detector would make each worker wait for a second at its end.
	w.cmd.Env = append(os.Environ(), workerVariable+"=1", "GORACE=atexit_sleep_ms=0")
	w.cmd.Stderr = os.Stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.stdin = in
	t.Cleanup(func() { _ = w.cmd.Process.Kill() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%s has not begun: %v", name, err)
	}
	return w
}

// kill ends the worker in whatever it is doing.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	w.killed = sinceBoot()
}

// finish lets the worker end by itself.
func (w *worker) finish() {
	w.t.Helper()
	w.stdin.Close()
	if err := w.cmd.Wait(); err != nil {
		w.t.Errorf("%s: %v", w.name, err)
	}
}
