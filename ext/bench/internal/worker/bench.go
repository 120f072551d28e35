package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/ext/bench/internal/figures"
	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
)

// A bench is where a worker works.
type bench struct {
	lib    *stores.Library
	unlock func() error // of Lock
	held   []func() error
}

func (b *bench) obey(o Order) (r Report, err error) {
	switch o.Do {
	case Ready:
	case Alone:
		r.Tally, err = alone(b.lib, o.Key, o.For)
	case Crowd:
		r.Tally, err = crowd(b.lib, o)
	case Lock:
		r, err = b.lock(o.Key)
	case Unlock:
		r.At = time.Now()
		if b.unlock() != nil {
			r.Tally.Lost++
		}
	case Hold:
		b.held, err = hold(b.lib, o.Locks)
	case Free:
		r.Lost = free(b.held)
	case Measure:
		r.Use, err = measure()
	default:
		err = fmt.Errorf("nobody knows how to %q", o.Do)
	}
	return r, err
}

// lock asks again if it is never woken.
func (b *bench) lock(key string) (r Report, err error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		unlock, err := lock(ctx, b.lib, key)
		r.At = time.Now()
		if err == nil {
			b.unlock = func() error {
				defer cancel()
				return unlock()
			}
			return r, nil
		}
		cancel()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return r, err
		}
		r.Tally.Hung++
	}
}

// lock asks again as long as an answer only fails to come in time, until ctx ends: a
// server on a busy machine is slow, which counts, but is not wrong.
func lock(ctx context.Context, lib *stores.Library, key string) (unlock func() error, err error) {
	unlock, err = lib.Lock(ctx, key)
	for errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		unlock, err = lib.Lock(ctx, key)
	}
	return unlock, err
}

const holders = 64 // goroutines that lock at the same time

// hold locks n keys.
func hold(lib *stores.Library, n int) ([]func() error, error) {
	unlocks, errs := make([]func() error, n), make([]error, holders)
	var wg sync.WaitGroup
	for g := range holders {
		wg.Go(func() {
			for i := g; i < n && errs[g] == nil; i += holders {
				unlocks[i], errs[g] = lock(context.Background(), lib, fmt.Sprint("held", i))
			}
		})
	}
	wg.Wait()
	return unlocks, errors.Join(errs...)
}

// free unlocks and returns how many were lost before.
func free(unlocks []func() error) int {
	lost := make([]int, holders)
	var wg sync.WaitGroup
	for g := range holders {
		wg.Go(func() {
			for i := g; i < len(unlocks); i += holders {
				if unlocks[i]() != nil {
					lost[g]++
				}
			}
		})
	}
	wg.Wait()
	return figures.Sum(lost)
}
