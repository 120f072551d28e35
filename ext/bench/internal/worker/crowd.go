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
	Counts []int // locks of each goroutine before the end
	Had    int   // locks of all, with those that some have waited for beyond the end

	// Times are from asking to holding, and of Alone from asking to having given
	// back, or the mean of several where the clock would cost more than a lock.
	Times []time.Duration

	Hung  int // waiters that were never woken
	Lost  int // locks that could not be given back, such as those that were gone
	Twice int // locks that were granted while another held the key, as far as that is seen
}

// Join counts other goroutines beside those of t.
func (t *Tally) Join(others Tally) {
	t.Counts = append(t.Counts, others.Counts...)
	t.Had += others.Had
	t.Times = append(t.Times, others.Times...)
	t.Hung += others.Hung
	t.Lost += others.Lost
	t.Twice += others.Twice
}

// slice is what Alone times at least at once.
const slice = 20 * time.Microsecond

// alone locks and unlocks one key for so long.
func alone(lib *stores.Library, key string, d time.Duration) (t Tally, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+patience)
	defer cancel()
	n := 1
	for end := time.Now().Add(d); time.Now().Before(end) || t.Had == 0; {
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
		t.Had += n
		if spent < slice {
			n *= 2
		}
	}
	t.Counts = []int{t.Had}
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
		t.Had++
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
