package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/ext/bench/internal/stores"
)

// A Tally is what goroutines that lock and unlock in a loop have got.
type Tally struct {
	Counts []int // locks of each goroutine

	// Times are from asking to holding, and of Alone from asking to having given
	// back, or the mean of several where the clock would cost more than a lock.
	Times []time.Duration

	Hung  int // waiters that were never woken
	Lost  int // locks that could not be given back, such as those that were gone
	Twice int // locks that were granted while another goroutine held the key
}

// flaws adds what went wrong for others.
func (t *Tally) flaws(others Tally) {
	t.Hung += others.Hung
	t.Lost += others.Lost
	t.Twice += others.Twice
}

// Join counts other goroutines beside those of t.
func (t *Tally) Join(others Tally) {
	t.Counts = append(t.Counts, others.Counts...)
	t.Times = append(t.Times, others.Times...)
	t.flaws(others)
}

// Add counts what the same goroutines have got in another round.
func (t *Tally) Add(more Tally) {
	if t.Counts == nil {
		t.Counts = make([]int, len(more.Counts))
	}
	for g, n := range more.Counts {
		t.Counts[g] += n
	}
	t.Times = append(t.Times, more.Times...)
	t.flaws(more)
}

// slice is what Alone times at least at once.
const slice = 20 * time.Microsecond

// alone locks and unlocks one key for so long.
func alone(lib *stores.Library, key string, d time.Duration) (t Tally, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+patience)
	defer cancel()
	n, locks := 1, 0
	for end := time.Now().Add(d); time.Now().Before(end) || locks == 0; {
		start := time.Now()
		for range n {
			unlock, err := lock(ctx, lib, key)
			if err == nil {
				err = unlock()
			}
			if err != nil {
				return t, err
			}
		}
		spent := time.Since(start)
		t.Times = append(t.Times, spent/time.Duration(n))
		locks += n
		if spent < slice {
			n *= 2
		}
	}
	t.Counts = []int{locks}
	return t, nil
}

// crowd lets goroutines lock and unlock for so long. Whoever waits at the end
// waits on, so that its wait counts in full.
func crowd(lib *stores.Library, o Order) (all Tally, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.For+patience)
	defer cancel()
	tallies, errs := make([]Tally, o.Goroutines), make([]error, o.Goroutines)
	shared := new(atomic.Int32)
	end := time.Now().Add(o.For)
	var wg sync.WaitGroup
	for g := range o.Goroutines {
		key, holders := o.Key, shared
		if o.OwnKeys {
			key, holders = fmt.Sprint(o.Key, g), new(atomic.Int32)
		}
		wg.Go(func() { tallies[g], errs[g] = member(ctx, lib, key, holders, end) })
	}
	wg.Wait()
	for g, t := range tallies {
		if errs[g] != nil && ctx.Err() != nil {
			t.Hung++
			t.Times = append(t.Times, o.For+patience)
			errs[g] = nil
		}
		all.Join(t)
	}
	return all, errors.Join(errs...)
}

// member is one goroutine of a crowd.
func member(ctx context.Context, lib *stores.Library, key string, holders *atomic.Int32, end time.Time) (t Tally, err error) {
	t.Counts = []int{0}
	for asked := time.Now(); asked.Before(end) || len(t.Times) == 0; asked = time.Now() {
		unlock, err := lock(ctx, lib, key)
		if err != nil {
			return t, err
		}
		held := time.Now()
		t.Times = append(t.Times, held.Sub(asked))
		if held.Before(end) {
			t.Counts[0]++
		}
		if holders.Add(1) != 1 {
			t.Twice++
		}
		holders.Add(-1)
		if unlock() != nil {
			t.Lost++
		}
	}
	return t, nil
}
