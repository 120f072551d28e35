// Package starve tests that every waiter for a key acquires the key, on stores without a
// queue.
package starve

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// hold is how long a lock is held. The gap between a release and the next lock of the same
// process is short against hold, so other processes seldom retry in the gap.
const hold = 20 * time.Millisecond

// A Party is a process that wants the key.
type Party struct {
	Locks      *holdfast.Locker
	Goroutines int
	Options    []holdfast.LockOption
	First      bool // locks before the other parties come, and may starve
}

// Check lets the parties lock a key repeatedly until each goroutine has held the key want
// times. Check fails if a goroutine starves: if there have been most locks before the
// goroutine has finished.
func Check(t *testing.T, key string, want, most int, parties ...Party) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &contest{t: t, key: key, want: want, most: most, end: cancel, first: make(chan struct{})}
	for _, p := range parties {
		c.all += p.Goroutines
		if p.First {
			c.early += p.Goroutines
		}
	}
	c.wanting.Store(int64(c.all - c.early))
	if c.early == 0 {
		close(c.first)
	}
	counts := make([]int, 0, c.all)
	var all sync.WaitGroup
	start := time.Now()
	for _, p := range parties {
		for range p.Goroutines {
			counts = append(counts, 0)
			count := &counts[len(counts)-1]
			all.Go(func() { c.run(ctx, p, count) })
		}
	}
	all.Wait()
	t.Logf("%d locks in %v: %v", c.total.Load(), time.Since(start), counts)
	if n := c.wanting.Load(); n > 0 && !t.Failed() {
		t.Errorf("after %d locks %d goroutines have not had %d: %v", c.total.Load(), n, want, counts)
	}
}

// A contest is the shared state of the goroutines of a Check.
type contest struct {
	t          *testing.T
	key        string
	want, most int           // locks, of a goroutine and in total
	all, early int           // goroutines
	first      chan struct{} // closed when the early goroutines have begun
	end        func()
	total      atomic.Int64 // locks
	wanting    atomic.Int64 // goroutines with less than want locks
}

// run locks and unlocks until the end.
func (c *contest) run(ctx context.Context, p Party, count *int) {
	if !p.First {
		select {
		case <-c.first:
		case <-ctx.Done(): // after an error
		}
	}
	for ctx.Err() == nil {
		lock, err := p.Locks.Lock(ctx, c.key, p.Options...)
		if err == nil {
			time.Sleep(hold) // the work
			err = lock.Unlock()
		}
		switch {
		case err == nil:
			*count++
			c.counted(p, *count)
		case errors.Is(err, os.ErrDeadlineExceeded): // A slow server; a release goes on in the background.
		case ctx.Err() == nil:
			c.t.Error(err)
			c.end()
		}
	}
}

// counted notes the lock with the given number of a goroutine.
func (c *contest) counted(p Party, number int) {
	total := c.total.Add(1)
	if total == int64(c.early) {
		close(c.first)
	}
	if !p.First && number == c.want && c.wanting.Add(-1) == 0 || total == int64(c.most) {
		c.end()
	}
}
