package once_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// A desk is where effects are asked for: locks and records, of one bubble.
type desk struct {
	*testing.T
	locks   *holdfast.Locker
	records once.Records
	runs    atomic.Int32
}

// bubble runs a test with a desk of its own, in fake time.
func bubble(t *testing.T, test func(d *desk)) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{T: t, locks: must.Get(holdfast.New(memlock.New(), nil)), records: &faulty{lose: never}}
		defer d.locks.Close()
		test(d)
	})
}

func (d *desk) effects() once.Runner {
	return once.Runner{Locks: d.locks, Records: d.records, Retention: time.Hour}
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// do counts its runs, and its result is the number of the run.
func (d *desk) do(ctx context.Context, key string, opts ...holdfast.LockOption) (string, error) {
	result, err := d.effects().Do(ctx, key, func(context.Context) ([]byte, error) {
		n := d.runs.Add(1)
		time.Sleep(time.Minute)
		return fmt.Append(nil, "run ", n), nil
	}, opts...)
	return string(result), err
}

func (d *desk) want(want string, result string, err error) {
	d.Helper()
	if err != nil || result != want {
		d.Fatalf("got %q, %v; want %q", result, err, want)
	}
}

func (d *desk) begin(fingerprint string, opts ...holdfast.LockOption) (*once.Effect, error) {
	return d.effects().Begin(d.Context(), "key", fingerprint, opts...)
}

// owned begins an effect that is to be owned.
func (d *desk) owned(fingerprint string) *once.Effect {
	d.Helper()
	e, err := d.begin(fingerprint)
	d.must(err)
	if result, done := e.Result(); done {
		d.Fatalf("it is done already: %q", result)
	}
	return e
}

func TestEveryoneGetsOneResult(t *testing.T) {
	bubble(t, func(d *desk) {
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				result, err := d.do(d.Context(), "key")
				if err != nil || result != "run 1" {
					d.Errorf("got %q, %v", result, err)
				}
			})
		}
		all.Wait()
		for range 200 {
			result, err := d.do(d.Context(), "key")
			d.want("run 1", result, err)
		}
		result, err := d.do(d.Context(), "other")
		d.want("run 2", result, err)

		time.Sleep(2 * time.Hour) // The retention is over.
		result, err = d.do(d.Context(), "key")
		d.want("run 3", result, err)
	})
}

func TestRepeatWhileTheFirstRuns(t *testing.T) {
	bubble(t, func(d *desk) {
		first := make(chan string)
		go func() {
			result, _ := d.do(d.Context(), "key")
			first <- result
		}()
		synctest.Wait()
		if _, err := d.do(d.Context(), "key", holdfast.Wait(0)); !errors.Is(err, holdfast.ErrHeld) {
			d.Errorf("got %v, want ErrHeld", err)
		}
		ctx, cancel := context.WithTimeout(d.Context(), time.Second)
		defer cancel()
		if _, err := d.do(ctx, "key"); !errors.Is(err, holdfast.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			d.Errorf("got %v, want ErrHeld and the end of the context", err)
		}
		d.want("run 1", <-first, nil)
	})
}

// The remains of a request do not depend on whether its client still is there.
func TestCallerIsGone(t *testing.T) {
	bubble(t, func(d *desk) {
		ctx, cancel := context.WithCancel(d.Context())
		result, err := d.effects().Do(ctx, "key", func(context.Context) ([]byte, error) {
			cancel()
			return []byte("kept"), nil
		})
		d.want("kept", string(result), err)
		result2, err := d.do(d.Context(), "key")
		d.want("kept", result2, err)

		ctx, cancel = context.WithCancel(d.Context())
		_, err = d.effects().Do(ctx, "other", func(ctx context.Context) ([]byte, error) {
			cancel()
			return nil, ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			d.Errorf("got %v", err)
		}
		again, err := d.do(d.Context(), "other", holdfast.Wait(0))
		d.want("run 1", again, err)
	})
}

func TestErrorsAndPanicsAreNotRemembered(t *testing.T) {
	bubble(t, func(d *desk) {
		broken := errors.New("broken")
		_, err := d.effects().Do(d.Context(), "key", func(context.Context) ([]byte, error) { return []byte("half"), broken })
		if !errors.Is(err, broken) {
			d.Errorf("got %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					d.Error("the panic was swallowed")
				}
			}()
			_, _ = d.effects().Do(d.Context(), "key", func(context.Context) ([]byte, error) { panic("at work") })
		}()
		result, err := d.do(d.Context(), "key", holdfast.Wait(0))
		d.want("run 1", result, err)
	})
}

func TestFingerprint(t *testing.T) {
	bubble(t, func(d *desk) {
		mismatch := func() {
			d.Helper()
			if _, err := d.begin("b"); !errors.Is(err, once.ErrMismatch) {
				d.Errorf("got %v, want ErrMismatch", err)
			}
		}
		e := d.owned("a")
		mismatch() // and does not wait
		d.must(e.Close())

		e = d.owned("b") // Nothing was remembered.
		d.must(e.Close())

		e = d.owned("a")
		d.must(e.Finish(d.Context(), []byte("done")))
		mismatch() // also before it is closed
		d.must(e.Close())
		mismatch()
		e, err := d.begin("a")
		d.must(err)
		result, done := e.Result()
		if !done || string(result) != "done" || e.Token() != 0 || e.Context(d.Context()) != d.Context() {
			d.Errorf("got %q, %v, %d", result, done, e.Token())
		}
		d.must(e.Close())
	})
}

// A different request under the key of a dead owner is refused until the key is forgotten,
// since the first request may have taken effect.
func TestFingerprintOfTheDead(t *testing.T) {
	bubble(t, func(d *desk) {
		_, err := d.begin("a", holdfast.NoRenew())
		d.must(err)
		time.Sleep(time.Hour)
		if _, err := d.begin("b"); !errors.Is(err, once.ErrMismatch) {
			d.Errorf("got %v, want ErrMismatch", err)
		}
		d.must(d.effects().Forget(d.Context(), "key"))
		d.must(d.owned("b").Close())
	})
}

// An owner that dies leaves what it has begun, and is followed after one TTL.
func TestOwnerDies(t *testing.T) {
	bubble(t, func(d *desk) {
		_, err := d.begin("a", holdfast.NoRenew(), holdfast.TTL(5*time.Second))
		d.must(err)
		began := time.Now()
		e := d.owned("a")
		if waited := time.Since(began); waited < 4*time.Second || waited > 10*time.Second {
			d.Errorf("it took %v", waited)
		}
		d.must(e.Close())
	})
}

func TestFormerOwner(t *testing.T) {
	bubble(t, func(d *desk) {
		former, err := d.begin("", holdfast.NoRenew(), holdfast.TTL(5*time.Second))
		d.must(err)
		later := d.owned("")
		if former.Token() >= later.Token() {
			d.Errorf("tokens %d, %d", former.Token(), later.Token())
		}
		refused := func(err error) {
			d.Helper()
			if !errors.Is(err, once.ErrUnrecorded) || !errors.Is(err, fence.ErrOutdated) || !errors.Is(err, holdfast.ErrLost) {
				d.Errorf("got %v, want ErrUnrecorded, ErrOutdated and ErrLost", err)
			}
		}
		refused(former.Finish(d.Context(), []byte("former")))
		d.must(later.Finish(d.Context(), []byte("later")))
		refused(former.Finish(d.Context(), []byte("former")))
		d.must(former.Close()) // Finish has said it.
		d.must(later.Close())
		result, err := d.do(d.Context(), "key")
		d.want("later", result, err)
	})
}

// A function that hangs, in a process that lives, holds up the others for no longer
// than it may.
func TestHangingEffect(t *testing.T) {
	bubble(t, func(d *desk) {
		let, hung := make(chan struct{}), make(chan error)
		go func() {
			_, err := d.effects().Do(d.Context(), "key", func(context.Context) ([]byte, error) {
				<-let
				return []byte("too late"), nil
			}, holdfast.MaxHold(10*time.Minute))
			hung <- err
		}()
		synctest.Wait()
		began := time.Now()
		result, err := d.do(d.Context(), "key")
		d.want("run 1", result, err)
		if took := time.Since(began); took < 11*time.Minute || took > 12*time.Minute {
			d.Errorf("it took %v, want ten minutes, a TTL at most, and a minute", took)
		}
		close(let)
		if err := <-hung; !errors.Is(err, once.ErrUnrecorded) || !errors.Is(err, fence.ErrOutdated) {
			d.Errorf("the one that hung got %v, want ErrUnrecorded and ErrOutdated", err)
		}
		result, err = d.do(d.Context(), "key")
		d.want("run 1", result, err)
	})
}

// An owner that has lost the lock, but has no successor, has done the effect after all.
func TestLossThatNobodyUsed(t *testing.T) {
	bubble(t, func(d *desk) {
		result, err := d.effects().Do(d.Context(), "key", func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), holdfast.ErrLost) {
				d.Errorf("the context ended by %v", context.Cause(ctx))
			}
			return []byte("done"), nil
		}, holdfast.NoRenew())
		d.want("done", string(result), err)
		again, err := d.do(d.Context(), "key")
		d.want("done", again, err)

		_, err = d.effects().Do(d.Context(), "other", func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, holdfast.NoRenew())
		if !errors.Is(err, holdfast.ErrLost) || !errors.Is(err, context.Canceled) {
			d.Errorf("got %v, want ErrLost and the error of the effect", err)
		}
	})
}

func TestForget(t *testing.T) {
	bubble(t, func(d *desk) {
		result, err := d.do(d.Context(), "key")
		d.want("run 1", result, err)
		d.must(d.effects().Forget(d.Context(), "key"))
		d.must(d.effects().Forget(d.Context(), "key"))
		result, err = d.do(d.Context(), "key")
		d.want("run 2", result, err)
	})
}

func TestBadInput(t *testing.T) {
	bubble(t, func(d *desk) {
		long := strings.Repeat("x", 513)
		for want, bad := range map[string]struct {
			key, fingerprint string
			effects          once.Runner
		}{
			"key is empty":      {"", "", d.effects()},
			"at most 507":       {long[:508], "", d.effects()},
			"not valid UTF-8":   {"\xff", "", d.effects()},
			"at most 256":       {"key", long, d.effects()},
			"retention is -1ns": {"key", "", once.Runner{Locks: d.locks, Records: d.records, Retention: -1}},
			"from 1ms":          {"key", "", once.Runner{Locks: d.locks, Records: d.records, Retention: 20 * 366 * 24 * time.Hour}},
			"Runner.Locks":      {"key", "", once.Runner{Records: d.records}},
			"Runner.Records":    {"key", "", once.Runner{Locks: d.locks}},
		} {
			if _, err := bad.effects.Begin(d.Context(), bad.key, bad.fingerprint); !errors.Is(err, holdfast.ErrInvalid) || errors.Is(err, holdfast.ErrInvalidKey) != (bad.key != "key") || !strings.Contains(err.Error(), want) {
				d.Errorf("%v, want it to say %q", err, want)
			}
		}
		if _, err := d.effects().DoTx(d.Context(), "key", nil); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), "*once.SQL") {
			d.Errorf("DoTx without a database says %v", err)
		}
		if err := d.effects().Forget(d.Context(), long); !errors.Is(err, holdfast.ErrInvalidKey) {
			d.Errorf("Forget says %v, want ErrInvalidKey", err)
		}
		for want, opt := range map[string]holdfast.LockOption{
			"Exclusive and Shared exclude each other":  holdfast.Shared(),
			"Exclusive and Slots exclude each other":   holdfast.Slots(2),
			"Reenter and Exclusive exclude each other": holdfast.Reenter(),
		} {
			if _, err := d.begin("", opt); err == nil || !strings.Contains(err.Error(), want) {
				d.Errorf("%v, want it to say %s", err, want)
			}
		}
	})
}

func TestResultSize(t *testing.T) {
	bubble(t, func(d *desk) {
		e := d.owned("")
		err := e.Finish(d.Context(), make([]byte, once.MaxResult+1))
		if !errors.Is(err, once.ErrTooLarge) || !errors.Is(err, once.ErrUnrecorded) || !strings.Contains(err.Error(), "1048577") {
			d.Errorf("got %v, want ErrTooLarge", err)
		}
		d.must(e.Finish(d.Context(), make([]byte, once.MaxResult)))
		d.must(e.Close())
		if err := e.Finish(d.Context(), nil); err == nil || errors.Is(err, once.ErrUnrecorded) {
			d.Errorf("after Close: %v", err)
		}
		e, err = d.begin("")
		d.must(err)
		if result, done := e.Result(); !done || len(result) != once.MaxResult {
			d.Errorf("got %d bytes, %v", len(result), done)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	bubble(t, func(d *desk) {
		var m once.Memory
		for n := range 10_000 {
			_, err := m.Begin(d.Context(), fmt.Sprint(n), 1, "", time.Second)
			d.must(err)
			d.must(m.Finish(d.Context(), fmt.Sprint(n), 1, nil, time.Second))
			time.Sleep(100 * time.Millisecond)
		}
		if n := once.Size(&m); n > 100 {
			d.Errorf("%d records are kept, of 10 that live", n)
		}
	})
}
