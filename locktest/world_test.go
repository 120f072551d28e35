package locktest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/locktest"
)

// lock takes a lock that the test unlocks.
func lock(t *testing.T, locks *holdfast.Locker, key string, opts ...holdfast.LockOption) *holdfast.Lock {
	t.Helper()
	l, err := locks.Lock(t.Context(), key, opts...)
	if err != nil {
		t.Fatalf("Lock(%q): %v", key, err)
	}
	return l
}

func unlock(t *testing.T, l *holdfast.Lock) {
	t.Helper()
	if err := l.Unlock(); err != nil {
		t.Errorf("Unlock(%q): %v", l.Key(), err)
	}
}

// free fails the test unless the key can be had at once.
func free(t *testing.T, locks *holdfast.Locker, key string) {
	t.Helper()
	l, err := locks.TryLock(t.Context(), key)
	if err != nil {
		t.Errorf("%q is not free: %v", key, err)
		return
	}
	unlock(t, l)
}

func TestProcessesShareAStore(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a, b := w.Process("a"), w.Process("b")
		locks := a.Locker()
		if w.Process("a") != a || a.Locker() != locks || w.Locker() != w.Process("app").Locker() || a.Name() != "a" {
			t.Error("a name has more than one process, or a process more than one Locker")
		}
		l := lock(t, locks, "k")
		var held *holdfast.HeldError
		if _, err := b.Locker().TryLock(t.Context(), "k"); !errors.As(err, &held) || held.Owner != "a" {
			t.Errorf("the other process gets %v", err)
		}
		unlock(t, l)
		free(t, b.Locker(), "k")
	})
}

func TestOpenTakesOptions(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		var locked int
		opts := &holdfast.Options{Prefix: "app/", Owner: "me", Trace: &holdfast.Trace{Locked: func(holdfast.Event) { locked++ }}}
		l := lock(t, w.Process("a").Open(opts), "k")
		var held *holdfast.HeldError
		if _, err := w.Locker().TryLock(t.Context(), "app/k"); !errors.As(err, &held) || held.Owner != "me" {
			t.Errorf("under the prefix: %v", err)
		}
		w.Lose("app/k")
		if err := l.Unlock(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Unlock of what is lost: %v", err)
		}
		if locked != 1 {
			t.Errorf("the trace of the options has seen %d locks", locked)
		}
	})
}

func TestLose(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a := w.Process("a").Locker()
		first, second := lock(t, a, "k", holdfast.Shared()), lock(t, w.Process("b").Locker(), "k", holdfast.Shared())
		ctx := first.Context(t.Context())
		w.Lose("k")
		for _, l := range []*holdfast.Lock{first, second} {
			if err := l.Unlock(); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("a holder has not lost its lock: %v", err)
			}
		}
		if !errors.Is(context.Cause(ctx), holdfast.ErrLost) {
			t.Errorf("the context of a lost lock: %v", context.Cause(ctx))
		}
		free(t, w.Locker(), "k")
	})
}

// A holder that cannot hear of the loss overlaps with the next: that is what fences are for.
func TestLoseWhileCutOff(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a := w.Process("a")
		l := lock(t, a.Locker(), "k")
		a.Cut()
		w.Lose("k")
		if l.Err() != nil {
			t.Error("a process that is cut off knows of the loss")
		}
		next := lock(t, w.Process("b").Locker(), "k")
		if l.Err() != nil || next.Fence() <= l.Fence() {
			t.Errorf("the next holder has token %d after %d", next.Fence(), l.Fence())
		}
		time.Sleep(15 * time.Second)
		if err := l.Unlock(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("after the TTL: %v", err)
		}
		unlock(t, next)
	})
}

// A world may have any number of events.
func TestManyLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s: make prove")
	}
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		for range 100_000 {
			unlock(t, lock(t, w.Locker(), "k"))
		}
	})
}

func TestHoldElsewhere(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		release := w.HoldElsewhere("k")
		w.HoldElsewhere("readers", holdfast.Shared()) // until the end
		time.Sleep(time.Hour)
		var held *holdfast.HeldError
		if _, err := w.Locker().TryLock(t.Context(), "k"); !errors.As(err, &held) || held.Owner != "elsewhere" {
			t.Errorf("a key that is held elsewhere: %v", err)
		}
		got := make(chan *holdfast.Lock)
		go func() { got <- lock(t, w.Locker(), "k") }()
		synctest.Wait()
		release()
		release()
		unlock(t, <-got)
		unlock(t, lock(t, w.Locker(), "readers", holdfast.Shared()))
		w.HoldElsewhere("k")
		w.Lose("k")
		free(t, w.Locker(), "k")
	})
}

func TestCut(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a, b := w.Process("a"), w.Process("b").Locker()
		l := lock(t, a.Locker(), "k")
		began := time.Now()
		a.Cut()
		a.Cut()
		a.Step() // runs on
		if _, err := a.Open(nil).TryLock(t.Context(), "other"); err == nil || errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("a new Locker of a process that is cut off: %v", err)
		}
		next := lock(t, b, "k")
		if took := time.Since(began); l.Err() == nil || took < 10*time.Second || took > 20*time.Second {
			t.Errorf("the next process has the key after %v, and the first one says %v", took, l.Err())
		}
		unlock(t, next)
		a.Mend()
		a.Mend()
		if err := l.Unlock(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		free(t, a.Locker(), "k")
	})
}

func TestPause(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a := w.Process("a")
		data := locktest.NewRegister("data", "")
		l := lock(t, a.Locker(), "k")
		ctx := l.Context(t.Context())
		var all sync.WaitGroup
		a.Pause()
		a.Pause()
		all.Go(func() { data.Write(a, "late") })
		next := lock(t, w.Process("b").Locker(), "k")
		data.Write(w.Process("b"), "in time")
		unlock(t, next)
		synctest.Wait()
		if data.Value() != "in time" || ctx.Err() != nil {
			t.Errorf("a paused process writes %s, and its context says %v", data.Value(), ctx.Err())
		}
		a.Resume()
		a.Resume()
		all.Wait()
		if data.Read(a) != "late" {
			t.Error("a process that was resumed has not written")
		}
		if <-ctx.Done(); !errors.Is(context.Cause(ctx), holdfast.ErrLost) {
			t.Errorf("the context of a process that was resumed: %v", context.Cause(ctx))
		}
		if err := l.Unlock(); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Unlock: %v", err)
		}
		free(t, a.Locker(), "k")
	})
}

// A pause and a cut of one process end apart.
func TestPauseWithinACut(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a := w.Process("a")
		a.Cut()
		a.Pause()
		a.Resume()
		if _, err := a.Locker().TryLock(t.Context(), "k"); err == nil {
			t.Error("Resume has mended the cut")
		}
		a.Mend()
		free(t, a.Locker(), "k")
	})
}

func TestFencedRegister(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a := w.Process("a")
		data := locktest.NewFencedRegister("data", 1)
		if err := data.Write(a, 7, 2); err != nil {
			t.Error(err)
		}
		if v, err := data.Read(a, 8); v != 2 || err != nil {
			t.Errorf("read %d, %v", v, err)
		}
		var outdated *fence.OutdatedError
		if err := data.Write(a, 7, 3); !errors.As(err, &outdated) || outdated.Highest != 8 {
			t.Errorf("a write with token 7 after a read with 8: %v", err)
		}
		if v, err := data.Read(a, 7); v != 0 || !errors.Is(err, fence.ErrOutdated) {
			t.Errorf("a read with token 7 after one with 8: %d, %v", v, err)
		}
		if err := data.Write(a, 0, 3); err == nil || errors.Is(err, fence.ErrOutdated) {
			t.Errorf("a write with the token of a lock that has ended: %v", err)
		}
		if data.Value() != 2 {
			t.Errorf("%d was written by a refused write", data.Value())
		}
	})
}

// A lock that a goroutine of the test is about to unlock is no leak.
func TestLastUnlockIsAwaited(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		l, second := lock(t, w.Locker(), "k", holdfast.Shared()), lock(t, w.Locker(), "k", holdfast.Shared())
		unlock(t, l)
		go func() {
			<-t.Context().Done()
			time.Sleep(10 * time.Second)
			unlock(t, second)
		}()
	})
}

// If a process is cut off or paused when the test ends, the world ends the fault by itself.
func TestFaultsEndWithTheTest(t *testing.T) {
	locktest.Run(t, func(t *testing.T, w *locktest.World) {
		a, b := w.Process("a"), w.Process("b")
		la, lb := lock(t, a.Locker(), "a"), lock(t, b.Locker(), "b")
		a.Cut()
		b.Pause()
		go func() { _ = la.Unlock() }()
		go func() {
			b.Step()
			_ = lb.Unlock()
		}()
	})
}

func TestWorldIsOver(t *testing.T) {
	var old *locktest.World
	locktest.Run(t, func(t *testing.T, w *locktest.World) { old = w })
	defer func() {
		if got, want := recover(), "locktest: the world of TestWorldIsOver has ended: make one in each test"; got != want {
			t.Errorf("panics with %v, want %q", got, want)
		}
	}()
	old.Process("late")
}

func TestSeeds(t *testing.T) {
	var seeds []int
	locktest.Explore(t, 3, func(t *testing.T, w *locktest.World) {
		seeds = append(seeds, w.Seed())
		for {
			if l, err := w.Locker().Lock(t.Context(), "k"); err == nil {
				_ = l.Unlock() // may be lost by then
				return
			}
		}
	})
	locktest.Run(t, func(_ *testing.T, w *locktest.World) { seeds = append(seeds, w.Seed()) })
	if len(seeds) != 4 || seeds[0] != 1 || seeds[1] != 2 || seeds[2] != 3 || seeds[3] != 0 {
		t.Errorf("seeds %v, want 1, 2, 3 and 0 for Run", seeds)
	}
}
