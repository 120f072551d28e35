//go:build unix

package peers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A tally is what goroutines that lock and unlock in a loop have got.
type tally struct {
	Counts []int           // locks of each goroutine
	Waits  []time.Duration // from asking to holding
	Hung   int             // goroutines that were never woken
}

// patience is how long a waiter may wait after all others have stopped.
const patience = 10 * time.Second

var errTwo = errors.New("two held one key at the same time")

// crowd lets n goroutines lock and unlock for so long. Whoever waits at the end
// waits on, so that its wait counts in full.
func crowd(lib *library, key func(g int) string, n int, d time.Duration) (tally, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d+patience)
	defer cancel()
	t := tally{Counts: make([]int, n)}
	waits, errs := make([][]time.Duration, n), make([]error, n)
	holders := make(map[string]*atomic.Int32)
	for g := range n {
		holders[key(g)] = new(atomic.Int32)
	}
	end := time.Now().Add(d)
	var wg sync.WaitGroup
	for g := range n {
		holding := holders[key(g)]
		wg.Go(func() {
			for errs[g] == nil && time.Now().Before(end) {
				asked := time.Now()
				var unlock func() error
				if unlock, errs[g] = lib.lock(ctx, key(g)); errs[g] != nil {
					return
				}
				held := time.Now()
				waits[g] = append(waits[g], held.Sub(asked))
				if held.Before(end) {
					t.Counts[g]++
				}
				if holding.Add(1) != 1 {
					errs[g] = errTwo
				}
				holding.Add(-1)
				errs[g] = errors.Join(errs[g], unlock())
			}
		})
	}
	wg.Wait()
	for g, err := range errs {
		if err != nil && ctx.Err() != nil {
			t.Hung++
			waits[g] = append(waits[g], d+patience)
			errs[g] = nil
		}
	}
	t.Waits = slices.Concat(waits...)
	return t, errors.Join(errs...)
}

// add counts more of the same goroutines.
func (t *tally) add(more tally) {
	if t.Counts == nil {
		t.Counts = make([]int, len(more.Counts))
	}
	for g, n := range more.Counts {
		t.Counts[g] += n
	}
	t.Waits = append(t.Waits, more.Waits...)
	t.Hung += more.Hung
}

// join counts other goroutines beside those of t.
func (t *tally) join(others tally) {
	t.Counts = append(t.Counts, others.Counts...)
	t.Waits = append(t.Waits, others.Waits...)
	t.Hung += others.Hung
}

// fairness is what the least lucky goroutine got beside the luckiest.
func (t *tally) fairness() float64 {
	return float64(slices.Min(t.Counts)) / float64(max(slices.Max(t.Counts), 1))
}
