package sqlitelock_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
)

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return work(args[0], args[1]) })
	os.Exit(m.Run())
}

const patience = time.Minute // shows what hangs

// An order tells a worker what to do.
type order struct {
	Do         string // "count", "lock" or "unlock"
	Dir        string // count: where the counters are, "" for none
	Keys       []string
	Goroutines int           // count: on each key
	For        time.Duration // count
	Times      int           // count: how many locks of this worker are enough before that, if not 0
}

// A report is what comes of it.
type report struct {
	At    time.Time // when it was locked, or the unlocking began
	Fence uint64
	Locks int // counted
	Err   string
}

// work obeys until there are no more orders.
func work(url, ttlText string) error {
	ttl, err := time.ParseDuration(ttlText)
	if err != nil {
		return err
	}
	lk, err := holdfast.Open(context.Background(), url, &holdfast.Options{TTL: ttl})
	if err != nil {
		return err
	}
	defer lk.Close()
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	held := make(map[string]*holdfast.Lock)
	for {
		var o order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var r report
		switch o.Do {
		case "count":
			r.Locks, err = count(lk, o)
		case "lock":
			held[o.Keys[0]], err = servers.Patient(context.Background(), lk.Lock, o.Keys[0])
			r.At = time.Now()
			if err == nil {
				r.Fence = held[o.Keys[0]].Fence()
			}
		case "unlock":
			r.At = time.Now()
			err = held[o.Keys[0]].Unlock()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = nil // A slow machine releases it in the background.
			}
		}
		if err != nil {
			r.Err = err.Error()
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
}

// count locks keys for a while, or until that was often enough, and counts each time in a
// file of the key.
func count(lk *holdfast.Locker, o order) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.For)
	defer cancel()
	var total atomic.Int64
	var running sync.WaitGroup
	errs := make(chan error, len(o.Keys)*o.Goroutines)
	for _, key := range o.Keys {
		for range o.Goroutines {
			running.Go(func() {
				for ctx.Err() == nil {
					done, err := countOnce(ctx, lk, o.Dir, key)
					if done && total.Add(1) == int64(o.Times) {
						cancel()
					}
					// A machine with too much to do may not answer in time.
					if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, ctx.Err()) {
						errs <- err
						return
					}
				}
			})
		}
	}
	running.Wait()
	close(errs)
	return int(total.Load()), <-errs
}

func countOnce(ctx context.Context, lk *holdfast.Locker, dir, key string) (done bool, err error) {
	l, err := lk.Lock(ctx, key)
	if err != nil {
		return false, err
	}
	if dir != "" {
		err = increment(filepath.Join(dir, key))
	}
	return err == nil, errors.Join(err, l.Unlock())
}

func increment(path string) error {
	n, err := counted(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600)
}

func counted(path string) (int, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// A worker is another process.
type worker struct {
	*workers.Worker
	t   testing.TB
	in  *json.Encoder
	out *json.Decoder
}

func hire(t testing.TB, url string, ttl time.Duration) *worker {
	t.Helper()
	return employed(t, workers.Start(t, url, ttl.String()))
}

func employed(t testing.TB, w *workers.Worker) *worker {
	return &worker{w, t, json.NewEncoder(w.In), json.NewDecoder(w.Out)}
}

func (w *worker) order(o order) {
	w.t.Helper()
	if err := w.in.Encode(o); err != nil {
		w.t.Fatal(err)
	}
}

// report waits for the answer.
func (w *worker) report() report {
	w.t.Helper()
	var r report
	hung := time.AfterFunc(patience, func() { w.Process.Kill() })
	defer hung.Stop()
	if err := w.out.Decode(&r); err != nil {
		w.t.Fatalf("a worker says nothing: %v", err)
	}
	if r.Err != "" {
		w.t.Fatalf("a worker says: %s", r.Err)
	}
	return r
}

func (w *worker) do(o order) report {
	w.t.Helper()
	w.order(o)
	return w.report()
}

func lock(key string) order   { return order{Do: "lock", Keys: []string{key}} }
func unlock(key string) order { return order{Do: "unlock", Keys: []string{key}} }
