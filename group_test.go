package holdfast

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLockAllTakesEachKeyOnce(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		g, err := lk.LockAll(b.Context(), []string{"b", "a", "b"})
		if err != nil {
			b.Fatal(err)
		}
		if len(g.Locks()) != 2 || g.Lock("a").Fence() == 0 || g.Lock("c") != nil || g.Err() != nil {
			b.Errorf("group of %d locks, Err %v", len(g.Locks()), g.Err())
		}
		for _, key := range []string{"a", "b"} {
			if _, err := other.TryLock(b.Context(), key); !errors.Is(err, ErrHeld) {
				b.Errorf("%q: %v, want ErrHeld", key, err)
			}
		}
		if err := g.Unlock(); err != nil {
			b.Error(err)
		}
		if err := g.Unlock(); !errors.Is(err, ErrReleased) {
			b.Errorf("second Unlock: %v", err)
		}
		b.free(other, "a")
		b.free(other, "b")
	})
}

func TestLockAllGivesBackWhatItGot(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(other, "b")
		for _, wait := range []time.Duration{0, 2 * time.Second} {
			start := time.Now()
			_, err := lk.LockAll(b.Context(), []string{"c", "b", "a"}, Wait(wait))
			var e *Error
			if !errors.Is(err, ErrHeld) || !errors.As(err, &e) || e.Key != "b" {
				b.Errorf("Wait(%v): %v, want ErrHeld for b", wait, err)
			}
			if got := time.Since(start); got != wait {
				b.Errorf("Wait(%v) took %v", wait, got)
			}
			b.free(other, "a")
			b.free(other, "c")
		}
		b.unlock(l)
	})
}

// A store that falls silent while LockAll waits does not keep it beyond its context.
func TestLockAllEndsWithItsContext(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(other, "b")
		ctx, cancel := context.WithCancel(b.Context())
		time.AfterFunc(2*time.Second, func() {
			b.store.set(func(f *faulty) { f.acquire, f.release = speechless, hangs })
			cancel()
		})
		start := time.Now()
		_, err := lk.LockAll(ctx, []string{"a", "b"})
		if took := time.Since(start); took != 2*time.Second || !errors.Is(err, context.Canceled) {
			b.Errorf("it took %v, and the context 2s: %v", took, err)
		}
		b.store.set(func(f *faulty) { f.acquire, f.release = nil, nil })
		b.unlock(l)
		b.unlock(b.lock(other, "a"))
	})
}

func TestGroupUnlocksAtOnce(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		g, err := lk.LockAll(b.Context(), manyKeys(MaxGroup))
		if err != nil {
			b.Fatal(err)
		}
		b.store.set(func(f *faulty) { f.release = hangs })
		start := time.Now()
		if err := g.Unlock(); !silent(err) {
			b.Errorf("Unlock on a store that hangs: %v", err)
		}
		if got := time.Since(start); got > 4*time.Second {
			b.Errorf("%d locks took %v, want no longer than one", MaxGroup, got)
		}
		b.store.set(func(f *faulty) { f.release = nil })
	})
}

func TestGroupEndsWithTheFirstLoss(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		g, err := lk.LockAll(b.Context(), []string{"a", "b", "c"})
		if err != nil {
			b.Fatal(err)
		}
		ctx := g.Context(b.Context())
		if err := lk.Break(b.Context(), "b", g.Lock("b").ID()); err != nil {
			b.Fatal(err)
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrLost) || !errors.Is(g.Err(), ErrLost) {
			b.Errorf("cause %v, Err %v; want ErrLost", context.Cause(ctx), g.Err())
		}
		if err := g.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock: %v, want ErrLost", err)
		}
		synctest.Wait()
		b.free(lk, "a")
		b.free(lk, "c")
	})
}

// Transfers between random accounts, in random order of arguments, neither
// deadlock nor lose money.
func TestLockAllNeverDeadlocks(t *testing.T) {
	simulate(t, func(b *bench) {
		lockers := []*Locker{b.open(nil), b.open(nil)}
		accounts := map[string]*int{}
		names := []string{"a", "b", "c", "d", "e"}
		for _, name := range names {
			balance := 100
			accounts[name] = &balance
		}
		var wg sync.WaitGroup
		for i := range 16 {
			r := rand.New(rand.NewPCG(3, uint64(i)))
			wg.Go(func() {
				for range 30 {
					from, to := names[r.IntN(5)], names[r.IntN(5)]
					g, err := lockers[i%2].LockAll(b.Context(), []string{from, to})
					if err != nil {
						b.Error(err)
						return
					}
					x := *accounts[from]
					time.Sleep(time.Millisecond)
					*accounts[from] = x - 1
					*accounts[to]++
					if err := g.Unlock(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		total := 0
		for _, balance := range accounts {
			total += *balance
		}
		if total != 500 {
			b.Errorf("total %d, want 500", total)
		}
	})
}
