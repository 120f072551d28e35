package once_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/sim"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

var errReset = errors.New("connection reset")

// faulty are records behind a network that loses requests and answers.
type faulty struct {
	once.Memory
	lose func(what string) (request, answer bool)
}

func never(string) (request, answer bool) { return false, false }

// call makes a call unless its request is lost.
func (f *faulty) call(ctx context.Context, what string, call func() error) error {
	request, answer := f.lose(what)
	if request {
		return errReset
	}
	err := call()
	if answer {
		return errReset
	}
	return errors.Join(err, ctx.Err())
}

func (f *faulty) Load(ctx context.Context, key string) (r once.Record, err error) {
	err = f.call(ctx, "load", func() (err error) { r, err = f.Memory.Load(ctx, key); return err })
	return r, err
}

func (f *faulty) Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (r once.Record, err error) {
	err = f.call(ctx, "begin", func() (err error) { r, err = f.Memory.Begin(ctx, key, token, fingerprint, keep); return err })
	return r, err
}

func (f *faulty) Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	return f.call(ctx, "finish", func() error { return f.Memory.Finish(ctx, key, token, result, keep) })
}

func (f *faulty) Forget(ctx context.Context, key string, token uint64) error {
	return f.call(ctx, "forget", func() error { return f.Memory.Forget(ctx, key, token) })
}

func TestLostAnswers(t *testing.T) {
	bubble(t, func(d *desk) {
		for _, lost := range []string{"finish/request", "finish/answer"} {
			times := 5
			d.records = &faulty{lose: func(what string) (request, answer bool) {
				if what != "finish" || times == 0 {
					return false, false
				}
				times--
				return lost == "finish/request", lost == "finish/answer"
			}}
			d.runs.Store(0)
			for range 3 {
				result, err := d.do(d.Context(), "key")
				d.want("run 1", result, err)
			}
		}
	})
}

// If the records cannot be reached, the runner says so, and does not keep the key.
func TestRecordsThatAreGone(t *testing.T) {
	bubble(t, func(d *desk) {
		gone := ""
		d.records = &faulty{lose: func(what string) (request, answer bool) { return what == gone, false }}
		for _, gone = range []string{"load", "begin"} {
			if _, err := d.do(d.Context(), "key"); !errors.Is(err, errReset) || errors.Is(err, once.ErrUnrecorded) || d.runs.Load() > 0 {
				d.Errorf("%s: %v after %d runs", gone, err, d.runs.Load())
			}
		}
		gone = "finish"
		began := time.Now()
		result, err := d.do(d.Context(), "key")
		if !errors.Is(err, once.ErrUnrecorded) || !errors.Is(err, errReset) || result != "run 1" {
			d.Errorf("got %q, %v; want the result and ErrUnrecorded", result, err)
		}
		if took := time.Since(began) - time.Minute; took < 9*time.Second || took > 15*time.Second {
			d.Errorf("it tried for %v", took)
		}
		gone = ""
		result, err = d.do(d.Context(), "key", holdfast.Wait(0))
		d.want("run 2", result, err)

		gone = "forget"
		broken := errors.New("broken")
		_, err = d.effects().Do(d.Context(), "other", func(context.Context) ([]byte, error) { return nil, broken })
		if !errors.Is(err, broken) || !errors.Is(err, errReset) {
			d.Errorf("got %v, want both errors", err)
		}
		result, err = d.do(d.Context(), "other", holdfast.Wait(0))
		d.want("run 3", result, err)
	})
}

// hanging are records that do not answer one kind of call.
type hanging struct {
	once.Memory
	what string
}

func (h *hanging) hang(ctx context.Context, what string) error {
	if what != h.what {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hanging) Load(ctx context.Context, key string) (once.Record, error) {
	if err := h.hang(ctx, "load"); err != nil {
		return once.Record{}, err
	}
	return h.Memory.Load(ctx, key)
}

func (h *hanging) Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
	if err := h.hang(ctx, "begin"); err != nil {
		return once.Record{}, err
	}
	return h.Memory.Begin(ctx, key, token, fingerprint, keep)
}

func (h *hanging) Forget(ctx context.Context, key string, token uint64) error {
	return errors.Join(h.hang(ctx, "forget"), h.Memory.Forget(ctx, key, token))
}

// Records that do not answer keep nobody waiting who has no limit of his own.
func TestRecordsThatHang(t *testing.T) {
	bubble(t, func(d *desk) {
		records := new(hanging)
		d.records = records
		for _, records.what = range []string{"load", "begin", "forget"} {
			began := time.Now()
			_, err := d.do(d.Context(), "key")
			if records.what == "forget" {
				d.must(err)
				began = time.Now()
				err = once.Runner{Locks: d.locks, Records: records}.Forget(d.Context(), "key")
			}
			if took := time.Since(began); !errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
				d.Errorf("%s: %v after %v", records.what, err, took)
			}
		}
		records.what = ""
		result, err := d.do(d.Context(), "key", holdfast.Wait(0))
		d.want("run 2", result, err)
	})
}

// slow are records whose answer to Begin takes longer than locks of this test last. They
// may look at their context, or not.
type slow struct {
	once.Memory
	looks bool
}

func (s *slow) Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (once.Record, error) {
	r, err := s.Memory.Begin(ctx, key, token, fingerprint, keep)
	select {
	case <-time.After(5 * time.Second):
	case <-ctx.Done():
		if s.looks {
			return once.Record{}, ctx.Err()
		}
		time.Sleep(5 * time.Second)
	}
	return r, err
}

// No effect runs without a lock: another may have done it while the records were slow.
func TestLostBeforeItRuns(t *testing.T) {
	for _, looks := range []bool{true, false} {
		bubble(t, func(d *desk) {
			d.records = &slow{looks: looks}
			_, err := d.do(d.Context(), "key", holdfast.MaxHold(time.Second))
			if runs := d.runs.Load(); !errors.Is(err, holdfast.ErrLost) || errors.Is(err, context.Canceled) || runs > 0 {
				d.Errorf("%d runs, and %v; want none, and ErrLost", runs, err)
			}
			if text := fmt.Sprint(err); strings.Count(text, "is lost") > 1 {
				d.Errorf("it says twice that the lock is lost: %s", text)
			}
		})
	}
}

func TestStoreWithoutTokens(t *testing.T) {
	bubble(t, func(d *desk) {
		d.locks = must.Get(holdfast.New(tokenless{memlock.New()}, nil))
		defer d.locks.Close()
		if _, err := d.do(d.Context(), "key"); !errors.Is(err, holdfast.ErrNotFenced) || d.runs.Load() > 0 {
			d.Errorf("got %v, want ErrNotFenced", err)
		}
		result, err := d.do(d.Context(), "key")
		if !errors.Is(err, holdfast.ErrNotFenced) {
			d.Errorf("got %q, %v", result, err)
		}
	})
}

// A history is what happened to one key.
type history struct {
	mu      sync.Mutex
	results map[string]int // by what the callers got
	known   bool           // somebody has a result, so nothing may run
	runs    int
	late    int // runs that began when the result was known
}

// Callers, as if in several processes, ask for many keys. Effects fail, panic and take
// longer than their locks last, and the records lose requests and answers. Every caller
// with a result gets the same result, and nothing runs after that.
func TestRandomHistories(t *testing.T) {
	first := sim.Seed(t)
	for seed := first; seed < first+20; seed++ {
		bubble(t, func(d *desk) { d.random(seed) })
	}
}

func (d *desk) random(seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	chance := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n) == 0
	}
	d.records = &faulty{lose: func(string) (request, answer bool) { return chance(20), chance(20) }}
	store := memlock.New()
	keys := make([]history, 5)
	var finished atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		locks := must.Get(holdfast.New(shared{store}, &holdfast.Options{TTL: time.Second}))
		defer locks.Close()
		for range 4 {
			all.Go(func() {
				for step := range 40 {
					if d.attempt(locks, &keys[step%len(keys)], fmt.Sprint("key ", step%len(keys)), chance) {
						finished.Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	for i := range keys {
		h := &keys[i]
		if len(h.results) != 1 || h.late > 0 {
			d.Errorf("seed %d, key %d: results %v, %d runs after one was known", seed, i, h.results, h.late)
		}
	}
	if finished.Load() == 0 {
		d.Errorf("seed %d: nobody got a result", seed)
	}
}

// attempt asks once, and reports whether it got a result.
func (d *desk) attempt(locks *holdfast.Locker, h *history, key string, chance func(int) bool) bool {
	defer func() { _ = recover() }()
	var opts []holdfast.LockOption
	if chance(3) {
		opts = append(opts, holdfast.NoRenew())
	}
	result, err := once.Runner{Locks: locks, Records: d.records}.Do(d.Context(), key, func(context.Context) ([]byte, error) {
		h.mu.Lock()
		h.runs++
		run := h.runs
		if h.known {
			h.late++
		}
		h.mu.Unlock()
		switch {
		case chance(4):
			return nil, errReset
		case chance(8):
			panic("at work")
		case chance(2):
			time.Sleep(3 * time.Second)
		}
		return fmt.Append(nil, "run ", run), nil
	}, opts...)
	if err != nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.results == nil {
		h.results = make(map[string]int)
	}
	h.results[string(result)]++
	h.known = true
	return true
}

// tokenless is a store without fencing tokens.
type tokenless struct{ driver.Store }

func (s tokenless) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, a)
	g.Fence, g.Span = 0, 0
	return g, err
}

// shared is a store that several Lockers use.
type shared struct{ driver.Store }

func (shared) Close() error { return nil }
