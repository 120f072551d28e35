package caslock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/caslock"
)

// A count is the number of requests by now.
type count struct{ reads, swaps int }

func (m *memory) count() count {
	m.mu.Lock()
	defer m.mu.Unlock()
	return count{m.reads, m.swaps}
}

func (c count) since(earlier count) count {
	return count{c.reads - earlier.reads, c.swaps - earlier.swaps}
}

// A counter counts its requests.
type counter interface {
	caslock.Register
	count() count
}

// crowd lets n processes queue for a key that one process holds.
type crowd struct {
	counter
	holder  *holdfast.Lock
	waiters sync.WaitGroup
	cancel  context.CancelFunc
}

const crowdTTL = 30 * time.Second

func newCrowd(t *testing.T, m counter, n int, ttl, hold time.Duration) *crowd {
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{counter: m, cancel: cancel}
	locker := func() *holdfast.Locker {
		l, err := holdfast.New(caslock.New(c.counter, nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	var err error
	if c.holder, err = locker().Lock(ctx, "k", holdfast.TTL(ttl)); err != nil {
		t.Fatal(err)
	}
	for range n {
		l := locker()
		c.waiters.Go(func() {
			lock, err := l.Lock(ctx, "k", holdfast.TTL(ttl))
			if err != nil {
				return
			}
			time.Sleep(hold)
			lock.Unlock()
		})
		synctest.Wait() // is in the queue
	}
	return c
}

// TestWhatWaitersCost counts the requests of processes that wait for a key which one process
// holds for long. The head of the queue reads every half second at least. Processes that have just
// come to wait read more often.
func TestWhatWaitersCost(t *testing.T) {
	for _, row := range []struct {
		ttl     time.Duration
		waiters int
		reads   float64 // a second, at most
		swaps   float64
	}{
		{30 * time.Second, 0, 0, 0.2}, {30 * time.Second, 1, 3.5, 0.35}, {30 * time.Second, 10, 5, 1}, {30 * time.Second, 100, 10, 3},
		{15 * time.Second, 0, 0, 0.3}, {15 * time.Second, 1, 3.5, 0.5}, {15 * time.Second, 10, 6, 2}, {15 * time.Second, 100, 12, 5},
	} {
		if testing.Short() && row.waiters > 10 {
			continue // takes 15 s: make prove
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, newMemory(), row.waiters, row.ttl, 0)
			during := func(d time.Duration) (reads, swaps float64) {
				before := c.count()
				time.Sleep(d)
				spent := c.count().since(before)
				return float64(spent.reads) / d.Hours(), float64(spent.swaps) / d.Hours()
			}
			firstReads, firstSwaps := during(2 * time.Minute)
			time.Sleep(2 * time.Minute)
			reads, swaps := during(time.Minute)
			t.Logf("TTL %v, %d waiters, an hour: %.0f reads and %.0f swaps, and %.0f and %.0f at the rate of the first two minutes",
				row.ttl, row.waiters, reads, swaps, firstReads, firstSwaps)
			if reads, swaps = reads/3600, swaps/3600; reads > row.reads || swaps > row.swaps {
				t.Errorf("TTL %v: %d waiters cost %.1f reads and %.1f swaps a second, want %.1f and %.1f at most",
					row.ttl, row.waiters, reads, swaps, row.reads, row.swaps)
			}
			c.holder.Unlock()
			c.cancel()
			c.waiters.Wait()
		})
	}
}

// TestWhatWatchersCost counts the requests of processes that are notified.
func TestWhatWatchersCost(t *testing.T) {
	for waiters, most := range map[int]float64{1: 1.5, 10: 4, 100: 8} {
		if testing.Short() && waiters > 10 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, newPushing(), waiters, crowdTTL, 0)
			time.Sleep(4 * time.Minute)
			before := c.count()
			const long = time.Minute
			time.Sleep(long)
			swaps := float64(c.count().since(before).swaps) / long.Seconds()
			t.Logf("%d waiters: %.2f swaps a second", waiters, swaps)
			if swaps > most {
				t.Errorf("%d waiters cost %.1f swaps a second, want %.1f at most", waiters, swaps, most)
			}
			c.holder.Unlock()
			c.cancel()
			c.waiters.Wait()
		})
	}
}

// TestWhatGrantsCost counts the requests for each hand-over in a queue that moves.
func TestWhatGrantsCost(t *testing.T) {
	for _, row := range []struct {
		waiters     int
		hold        time.Duration
		each        time.Duration // from grant to grant, at most
		reads, swap float64       // for each grant, at most
	}{
		{1, 0, time.Second, 3, 4},
		{10, 0, 2 * time.Second, 10, 5},
		{100, 0, 2 * time.Second, 15, 6},
		{100, 10 * time.Second, 14 * time.Second, 160, 25},
	} {
		if testing.Short() && row.waiters > 10 {
			break
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, newMemory(), row.waiters, crowdTTL, row.hold)
			time.Sleep(time.Minute)
			before, began := c.count(), time.Now()
			c.holder.Unlock()
			c.waiters.Wait()
			spent, n := c.count().since(before), float64(row.waiters)
			each := time.Since(began) / time.Duration(row.waiters)
			reads, swaps := float64(spent.reads)/n, float64(spent.swaps)/n
			t.Logf("%d waiters that hold for %v: a grant each %v, by %.1f reads and %.1f swaps", row.waiters, row.hold, each.Round(time.Millisecond), reads, swaps)
			if each > row.each || reads > row.reads || swaps > row.swap {
				t.Errorf("want at most %v, %.1f and %.1f", row.each, row.reads, row.swap)
			}
			c.cancel()
		})
	}
}
