package holdfast_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	_ "github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/internal/unproved"
)

// The test binary is also the worker process of TestProcessesCount.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HOLDFAST_TEST_COUNT_IN"); dir != "" {
		if err := count(dir, os.Getenv("HOLDFAST_TEST_JOURNAL"), os.Getenv("HOLDFAST_TEST_QUOTA")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	counters = 8 // goroutines in a worker
	lossFile = "lost"
)

// count adds one to the number in dir, quota times, from several goroutines. It
// reads, notes in the journal what it is going to write, and writes: three steps
// that only the lock keeps together.
func count(dir, journal, quota string) error {
	n, err := strconv.Atoi(quota)
	if err != nil {
		return err
	}
	locks, err := holdfast.Open(context.Background(), "file:"+filepath.ToSlash(filepath.Join(dir, "locks")), nil)
	if err != nil {
		return err
	}
	notes, err := os.OpenFile(journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, counters)
	for i := range errs {
		wg.Go(func() {
			for range (n + i) / counters {
				errs[i] = errors.Join(errs[i], countOne(locks, dir, notes))
			}
		})
	}
	wg.Wait()
	return errors.Join(errors.Join(errs...), notes.Close(), locks.Close())
}

// countOne is patient: on a busy machine, a process may stand still while it has the lock's
// file open, and the others get no answer.
func countOne(locks *holdfast.Locker, dir string, notes *os.File) error {
	lock, err := servers.Patient(context.Background(), locks.Lock, "counter")
	if err != nil {
		return err
	}
	err = errors.Join(increment(dir, notes), unlocking.AtOnce(lock))
	if loss := lock.Err(); errors.Is(loss, holdfast.ErrLost) { // this process may have written late
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, lossFile), []byte(loss.Error()), 0o600))
	}
	return err
}

func increment(dir string, notes *os.File) error {
	value, err := number(dir)
	if err != nil {
		return err
	}
	value++
	if _, err := fmt.Fprintln(notes, value); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "counter"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%09d", value)
	return errors.Join(err, f.Close())
}

func number(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "counter"))
	if errors.Is(err, os.ErrNotExist) || len(text) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}

// Four processes of eight goroutines count together while one after the other is
// killed with SIGKILL and replaced. No number is skipped, and none is written
// twice but for the one that a killed process had noted and not written.
func TestProcessesCount(t *testing.T) {
	const workers = 4
	quota, kills := 16_000, 8
	if testing.Short() {
		quota, kills = 4_000, 4
	}
	dir := t.TempDir()
	c := &counting{t: t, dir: dir}
	random := rand.New(rand.NewPCG(sim.Seed(t), 0))
	var running []*worker
	for range workers {
		running = append(running, c.start(quota/workers))
	}
	for kill := range kills {
		c.awaitNumber((kill+1)*quota/(kills+2), running)
		i := random.IntN(workers)
		running[i] = c.start(running[i].kill())
	}
	for _, w := range running {
		w.await()
	}
	if loss, err := os.ReadFile(filepath.Join(dir, lossFile)); err == nil {
		unproved.Skipf(t, "a worker stood still for longer than its lease: %s", loss)
	}
	got, err := number(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got < quota-kills || got > quota {
		t.Errorf("counted to %d, want %d but for what %d kills cost", got, quota, kills)
	}
	c.start(quota - got).await()
	if got, err = number(dir); err != nil || got != quota {
		t.Errorf("counted to %d, %v; want exactly %d", got, err, quota)
	}
	c.checkJournals(quota, kills)
}

// counting is a run of worker processes in one directory.
type counting struct {
	t        *testing.T
	dir      string
	journals []string
}

type worker struct {
	t       *testing.T
	cmd     *exec.Cmd
	quota   int
	journal string
	exited  chan struct{}
	err     error // how, once it has
}

func (c *counting) start(quota int) *worker {
	c.t.Helper()
	journal := filepath.Join(c.dir, fmt.Sprint("journal", len(c.journals)))
	c.journals = append(c.journals, journal)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(),
		"HOLDFAST_TEST_COUNT_IN="+c.dir, "HOLDFAST_TEST_JOURNAL="+journal, fmt.Sprint("HOLDFAST_TEST_QUOTA=", quota))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = cmd.Process.Kill() })
	w := &worker{t: c.t, cmd: cmd, quota: quota, journal: journal, exited: make(chan struct{})}
	go func() {
		defer close(w.exited)
		w.err = cmd.Wait()
	}()
	return w
}

func (w *worker) await() {
	w.t.Helper()
	<-w.exited
	if w.err != nil {
		w.t.Fatalf("worker: %v", w.err)
	}
}

func (w *worker) running() bool {
	select {
	case <-w.exited:
		return false
	default:
		return true
	}
}

// kill ends the worker in whatever it is doing and returns what it leaves to do.
func (w *worker) kill() int {
	w.t.Helper()
	if err := w.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.t.Fatal(err)
	}
	<-w.exited
	return max(w.quota-len(lines(w.t, w.journal)), 0)
}

// awaitNumber returns when the workers have counted that far.
func (c *counting) awaitNumber(n int, workers []*worker) {
	c.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		busy := slices.ContainsFunc(workers, (*worker).running)
		got, err := number(c.dir)
		if err == nil && got >= n {
			return
		}
		if !busy {
			c.t.Fatalf("all workers are done, but have counted to %d only, %v; want %d at least", got, err, n)
		}
	}
}

func (c *counting) checkJournals(quota, kills int) {
	c.t.Helper()
	seen := make([]int, quota+1)
	twice := 0
	for _, journal := range c.journals {
		for _, line := range lines(c.t, journal) {
			n, err := strconv.Atoi(line)
			if err != nil || n < 1 || n > quota {
				c.t.Fatalf("journal line %q", line)
			}
			if seen[n]++; seen[n] > 1 {
				twice++
			}
		}
	}
	for n, times := range seen[1:] {
		if times == 0 {
			c.t.Fatalf("number %d was never written", n+1)
		}
	}
	if twice > kills {
		c.t.Errorf("%d numbers were written twice, but only %d processes were killed", twice, kills)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var all []string
	for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}
