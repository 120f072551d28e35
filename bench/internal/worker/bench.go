package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/figures"
	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// A bench is the workplace of a worker.
type bench struct {
	lib     *stores.Library
	open    func() (*stores.Library, error)
	clients []*stores.Library // of Gather
	unlocks []func() error    // of Lock
	held    []func() error    // of Hold
}

func (b *bench) obey(o Order) (r Report, err error) {
	switch o.Do {
	case Ready:
	case Alone:
		r.Tally, err = alone(b.lib, o.Key, o.For)
	case Gather:
		err = b.gather(o.Clients, o.Key)
	case Scatter:
		b.scatter()
	case Crowd:
		r.Tally, err = crowd(b.libraries(o.Goroutines), o)
	case Lock:
		r, err = b.lock(o)
	case Unlock:
		r = b.unlock(o.For)
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

const openers = 16 // goroutines that open clients, or close them, at the same time

// gather opens n clients, and lets each of them wait for a key once, so that connections of
// all kinds are open.
func (b *bench) gather(n int, key string) error {
	b.clients = make([]*stores.Library, n)
	errs := make([]error, n)
	share(openers, n, func(i int) { b.clients[i], errs[i] = b.open() })
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := crowd(b.clients, Order{Key: key})
	return err
}

// scatter closes the clients of gather.
func (b *bench) scatter() {
	share(openers, len(b.clients), func(i int) {
		if b.clients[i] != nil {
			b.clients[i].Close()
		}
	})
	b.clients = nil
}

// libraries returns the clients of n goroutines: one for all, if nobody has gathered.
func (b *bench) libraries(n int) []*stores.Library {
	if b.clients != nil {
		return b.clients
	}
	return slices.Repeat([]*stores.Library{b.lib}, n)
}

// share calls do for each i below n, in some goroutines.
func share(goroutines, n int, do func(i int)) {
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := g; i < n; i += goroutines {
				do(i)
			}
		})
	}
	wg.Wait()
}

// lock locks keys at the same time.
func (b *bench) lock(o Order) (Report, error) {
	b.unlocks = make([]func() error, o.Locks)
	held, hung, errs := make([]time.Time, o.Locks), make([]int, o.Locks), make([]error, o.Locks)
	var wg sync.WaitGroup
	for i := range o.Locks {
		wg.Go(func() {
			b.unlocks[i], hung[i], errs[i] = insist(b.lib, fmt.Sprint(o.Key, i))
			held[i] = time.Now()
		})
	}
	wg.Wait()
	return Report{At: held, Tally: Tally{Hung: figures.Sum(hung)}}, errors.Join(errs...)
}

// unlock unlocks the locks of lock, each at some time within d.
func (b *bench) unlock(d time.Duration) Report {
	began, lost := make([]time.Time, len(b.unlocks)), make([]int, len(b.unlocks))
	var wg sync.WaitGroup
	for i, unlock := range b.unlocks {
		wg.Go(func() {
			<-time.After(rand.N(d + 1))
			began[i] = time.Now()
			if unlocking.Release(unlock) != nil {
				lost[i]++
			}
		})
	}
	wg.Wait()
	return Report{At: began, Tally: Tally{Lost: figures.Sum(lost)}}
}

// insist retries if the waiter is never woken. hung counts the retries.
func insist(lib *stores.Library, key string) (unlock func() error, hung int, err error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		release, err := lock(ctx, lib, key)
		if err == nil {
			return func() error {
				defer cancel()
				return release()
			}, hung, nil
		}
		cancel()
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return nil, hung, err
		}
		hung++
	}
}

// lock retries as long as an answer only fails to come in time, until ctx ends. A server
// on a busy machine is slow, which counts, but is not wrong.
func lock(ctx context.Context, lib *stores.Library, key string) (unlock func() error, err error) {
	unlock, err = lib.Lock(ctx, key)
	for (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil {
		unlock, err = lib.Lock(ctx, key)
	}
	return unlock, err
}

const holders = 64 // goroutines that lock at the same time

// hold locks n keys.
func hold(lib *stores.Library, n int) ([]func() error, error) {
	unlocks, errs := make([]func() error, n), make([]error, holders)
	share(holders, n, func(i int) {
		if g := i % holders; errs[g] == nil {
			unlocks[i], errs[g] = lock(context.Background(), lib, fmt.Sprint("held", i))
		}
	})
	return unlocks, errors.Join(errs...)
}

// free unlocks, and returns how many locks were lost earlier.
func free(unlocks []func() error) int {
	lost := make([]int, holders)
	share(holders, len(unlocks), func(i int) {
		if unlocking.Release(unlocks[i]) != nil {
			lost[i%holders]++
		}
	})
	return figures.Sum(lost)
}
