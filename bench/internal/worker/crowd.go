package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/stores"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// A Tally is the result of goroutines that lock and unlock in a loop.
type Tally struct {
	Counts []int // locks of each goroutine before the end
	Had    int   // locks of all goroutines, also those acquired after the end

	// Times are from the request to the grant. With Alone, Times are from the request to
	// the end of the release. If the clock would cost more than a lock, a time is the mean
	// of several locks.
	Times []time.Duration

	Hung  int // waiters that were never woken
	Lost  int // locks that could not be released, for example because they were gone; a late answer does not count
	Twice int // locks granted while the key was held, as far as the worker can see
}

// Join adds the results of more goroutines to t.
func (t *Tally) Join(others Tally) {
	t.Counts = append(t.Counts, others.Counts...)
	t.Had += others.Had
	t.Times = append(t.Times, others.Times...)
	t.Hung += others.Hung
	t.Lost += others.Lost
	t.Twice += others.Twice
}

// slice is the shortest time that Alone measures at once.
const slice = 20 * time.Microsecond

// alone locks and unlocks one key for d.
func alone(lib *stores.Library, key string, d time.Duration) (t Tally, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+patience)
	defer cancel()
	n := 1
	for end := time.Now().Add(d); time.Now().Before(end) || t.Had == 0; {
		start := time.Now()
		for range n {
			unlock, err := lock(ctx, lib, key)
			if err == nil {
				err = unlocking.Release(unlock)
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

// crowd makes a goroutine for each library lock and unlock for o.For. A waiter at the end
// keeps waiting, so that the wait counts in full.
func crowd(libs []*stores.Library, o Order) (all Tally, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), o.For+patience)
	defer cancel()
	tallies, errs := make([]Tally, len(libs)), make([]error, len(libs))
	shared := new(atomic.Int32)
	end := time.Now().Add(o.For)
	var wg sync.WaitGroup
	for g, lib := range libs {
		m := member{lib, o.Key, o.NewKeys, o.Pace, shared}
		if o.OwnKeys {
			m.key, m.holders = fmt.Sprint(o.Key, g), new(atomic.Int32)
		}
		wg.Go(func() { tallies[g], errs[g] = m.run(ctx, end) })
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

// A member is one goroutine of a crowd.
type member struct {
	lib     *stores.Library
	key     string
	newKeys bool
	pace    time.Duration
	holders *atomic.Int32
}

func (m member) run(ctx context.Context, end time.Time) (t Tally, err error) {
	t.Counts = []int{0}
	key := m.key
	for asked := time.Now(); asked.Before(end) || len(t.Times) == 0; asked = time.Now() {
		if m.newKeys {
			key = m.key + "-" + strconv.FormatInt(asked.UnixNano(), 36)
		}
		unlock, err := lock(ctx, m.lib, key)
		if err != nil {
			return t, err
		}
		held := time.Now()
		t.Times = append(t.Times, held.Sub(asked))
		t.Had++
		if held.Before(end) {
			t.Counts[0]++
		}
		if m.holders.Add(1) != 1 {
			t.Twice++
		}
		pause(m.pace)
		m.holders.Add(-1)
		if unlocking.Release(unlock) != nil {
			t.Lost++
		}
		pause(m.pace)
	}
	return t, nil
}

func pause(d time.Duration) {
	if d > 0 {
		<-time.After(d)
	}
}
