package holdfast

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func TestSlotsByWeight(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		two := b.lock(lk, "k", SlotsOf(2, 3))
		one := b.lock(other, "k", Slots(3))
		for _, from := range []*Locker{lk, other} {
			if _, err := from.TryLock(b.Context(), "k", Slots(3)); !errors.Is(err, ErrHeld) {
				b.Errorf("fourth slot of three: %v", err)
			}
		}
		b.unlock(two)
		again := b.lock(lk, "k", SlotsOf(2, 3))
		if again.Fence() <= one.Fence() || one.Fence() <= two.hold.Token() {
			b.Errorf("slot tokens %d, %d, %d do not grow", two.hold.Token(), one.Fence(), again.Fence())
		}
		b.unlock(again)
		b.unlock(one)
	})
}

func TestWaitLimit(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(other, "k")
		for _, from := range []*Locker{lk, other} {
			start := time.Now()
			_, err := from.Lock(b.Context(), "k", Wait(3*time.Second))
			if !errors.Is(err, ErrHeld) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
				b.Errorf("wait that ran out: %v, want ErrHeld alone", err)
			}
			if got := time.Since(start); got != 3*time.Second {
				b.Errorf("waited %v, want 3s", got)
			}
		}
		start := time.Now()
		if _, err := lk.Lock(b.Context(), "k", Wait(0)); !errors.Is(err, ErrHeld) || time.Since(start) != 0 {
			b.Errorf("Wait(0): %v after %v, want ErrHeld at once", err, since(start))
		}
		b.unlock(l)
	})
}

func TestBackoff(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(&Options{Owner: "other"})
		l := b.lock(other, "k")
		b.store.seen()
		start := time.Now()
		_, err := lk.Lock(b.Context(), "k", Backoff(50*time.Millisecond, 250*time.Millisecond), Wait(15*time.Second))
		if !errors.Is(err, ErrHeld) || errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `held by "other"`) {
			b.Errorf("when Wait is over: %v, want ErrHeld alone", err)
		}
		if got := time.Since(start); got != 15*time.Second {
			b.Errorf("waited %v, want 15s", got)
		}
		if n := b.store.seen().acquire; n < 80 || n > 130 {
			b.Errorf("%d tries in 15s, want one in about 150ms", n)
		}
		if holders, err := other.Holders(b.Context(), "k"); err != nil || len(holders) != 1 {
			b.Errorf("a try has a place in the queue: %+v, %v", holders, err)
		}

		time.AfterFunc(time.Minute, func() { b.unlock(l) })
		start = time.Now()
		l = b.lock(lk, "k", Backoff(time.Second, time.Second))
		if got := time.Since(start); got != time.Minute && got != time.Minute+time.Second {
			b.Errorf("the lock that was released after 1m was acquired after %v", got)
		}
		for _, lk := range []*Locker{lk, other} {
			ctx, cancel := context.WithTimeout(b.Context(), time.Second)
			if _, err := lk.Lock(ctx, "k", Backoff(time.Minute, time.Hour)); !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				b.Errorf("when the context has ended: %v", err)
			}
			cancel()
		}
		if _, err := lk.TryLock(b.Context(), "k", Backoff(0, time.Second)); !errors.Is(err, ErrInvalid) {
			b.Errorf("TryLock with Backoff: %v, want ErrInvalid", err)
		}
		b.unlock(l)
	})
}

// Between two tries the store may fail, for up to the TTL.
func TestBackoffToleratesAFailingStore(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(&Options{TTL: 5 * time.Second}), b.open(nil)
		l := b.lock(other, "k")
		got := make(chan error, 1)
		try := func(opts ...LockOption) {
			l, err := lk.Lock(b.Context(), "k", append(opts, Backoff(100*time.Millisecond, 100*time.Millisecond))...)
			if err == nil {
				b.unlock(l)
			}
			got <- err
		}
		fails := func(err error) {
			b.store.set(func(f *faulty) {
				f.acquire = func(_ context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
					if err != nil {
						return driver.Grant{}, err
					}
					return next()
				}
			})
		}
		go try()
		time.Sleep(time.Second)
		fails(errors.New("connection refused"))
		time.Sleep(4 * time.Second)
		fails(nil)
		b.unlock(l)
		if err := <-got; err != nil {
			b.Errorf("after a failure of 4s: %v", err)
		}
		fails(errors.New("connection refused"))
		for wait, longest := range map[time.Duration]time.Duration{time.Hour: 3 * time.Second, time.Second: time.Second} {
			start := time.Now()
			go try(Wait(wait))
			if err := <-got; err == nil || errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), "connection refused") {
				b.Errorf("of a store that has never answered: %v", err)
			}
			if took := time.Since(start); took < longest || took > longest+200*time.Millisecond {
				b.Errorf("tried for %v, want %v", took, longest)
			}
		}
		fails(driver.ErrInvalid)
		start := time.Now()
		try()
		if err := <-got; !errors.Is(err, ErrInvalid) || time.Since(start) != 0 {
			b.Errorf("a try that can never succeed: %v after %v", err, since(start))
		}
	})
}

func TestAtLeastKeepsTheKey(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		start := time.Now()
		l := b.lock(lk, "job", MinHold(time.Minute))
		time.Sleep(10 * time.Second)
		b.unlock(l)
		if err := lk.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
		if _, err := other.TryLock(b.Context(), "job"); !errors.Is(err, ErrHeld) {
			b.Errorf("10s into MinHold(1m): %v, want ErrHeld", err)
		}
		next := b.lock(other, "job")
		if got := time.Since(start); got < time.Minute || got > time.Minute+time.Second {
			b.Errorf("the next lock came %v after the first, want 1m", got)
		}
		b.unlock(next)
		long := b.lock(other, "job", MinHold(time.Second))
		time.Sleep(2 * time.Second)
		b.unlock(long)
		b.free(other, "job")
	})
}

func TestMaxHold(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k", MaxHold(time.Minute))
		start := time.Now()
		<-l.Done()
		var lost *LostError
		if err := l.Err(); !errors.As(err, &lost) || lost.Reason != LossMaxHold {
			b.Errorf("Err: %v, want held too long", err)
		}
		if got := time.Since(start); got != time.Minute {
			b.Errorf("lost after %v, want 1m", got)
		}
		next := b.lock(other, "k") // the worker never unlocks
		if got := time.Since(start); got > time.Minute+16*time.Second {
			b.Errorf("the next holder came after %v, want at most one TTL after the loss", got)
		}
		b.unlock(next)
		if err := l.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock after the loss: %v, want ErrLost", err)
		}
	})
}

func TestProgress(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k", Progress(time.Minute))
		for range 10 {
			time.Sleep(time.Minute - 1)
			if err := l.Progress(); err != nil {
				b.Fatalf("Progress in time: %v", err)
			}
		}
		start := time.Now()
		<-l.Done()
		var lost *LostError
		if err := l.Err(); !errors.As(err, &lost) || lost.Reason != LossStalled {
			b.Errorf("Err: %v, want no progress", err)
		}
		if got := time.Since(start); got != time.Minute {
			b.Errorf("lost %v after the last report, want 1m", got)
		}
		if err := l.Progress(); !errors.Is(err, ErrLost) {
			b.Errorf("Progress after the loss: %v, want ErrLost", err)
		}
		b.unlock(b.lock(other, "k")) // the worker never unlocks

		free := b.lock(lk, "free")
		time.Sleep(time.Hour)
		if err := free.Progress(); err != nil {
			b.Errorf("Progress without a limit: %v", err)
		}
		b.unlock(free)
	})
}

// The next hold of a claim that is handed over within the process has its own time.
func TestProgressOfTheNextHold(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		first := b.lock(lk, "k", Progress(time.Second))
		next := make(chan *Lock)
		go func() { next <- b.lock(lk, "k") }()
		synctest.Wait()
		b.unlock(first)
		l := <-next
		time.Sleep(time.Hour)
		b.unlock(l)
	})
}

func TestProgressOfAGroup(t *testing.T) {
	simulate(t, func(b *bench) {
		g, err := b.open(nil).LockAll(b.Context(), []string{"a", "b"}, Progress(time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		for range 3 {
			time.Sleep(time.Minute - 1)
			if err := g.Progress(); err != nil {
				b.Errorf("Progress in time: %v", err)
			}
		}
		time.Sleep(time.Minute)
		for _, l := range g.Locks() {
			var lost *LostError
			if err := l.Err(); !errors.As(err, &lost) || lost.Reason != LossStalled {
				b.Errorf("%s: %v, want no progress", l.Key(), err)
			}
		}
		if err := g.Progress(); !errors.Is(err, ErrLost) {
			b.Errorf("Progress after the loss: %v, want ErrLost", err)
		}
		_ = g.Unlock()
	})
}

// Many goroutines of one work report, and MaxHold ends the hold all the same.
func TestProgressOfManyAndMaxHold(t *testing.T) {
	simulate(t, func(b *bench) {
		l := b.lock(b.open(nil), "k", Progress(time.Second), MaxHold(time.Hour), NoRenew(), TTL(2*time.Hour))
		start := time.Now()
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				for l.Progress() == nil {
					time.Sleep(800 * time.Millisecond)
				}
			})
		}
		<-l.Done()
		var lost *LostError
		if err := l.Err(); !errors.As(err, &lost) || lost.Reason != LossMaxHold || time.Since(start) != time.Hour {
			b.Errorf("after %v: %v, want held too long after 1h", time.Since(start), err)
		}
		all.Wait()
		_ = l.Unlock()
	})
}

func TestNoRenewEndsWithTTL(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k", NoRenew(), TTL(10*time.Second))
		<-l.Done()
		var lost *LostError
		if err := l.Err(); !errors.As(err, &lost) || lost.Reason != LossExpired {
			b.Errorf("Err: %v, want expired", err)
		}
		if c := b.store.seen(); c.renew != 0 {
			b.Errorf("renewed %d times", c.renew)
		}
	})
}

func TestFencedRefusesStoreWithoutTokens(t *testing.T) {
	simulate(t, func(b *bench) {
		b.store.acquire = func(_ context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
			g, err := next()
			g.Fence = 0
			return g, err
		}
		lk := b.open(nil)
		for _, wait := range []time.Duration{0, time.Second} {
			if _, err := lk.Lock(b.Context(), "k", Fenced(), Wait(wait)); !errors.Is(err, ErrNotFenced) {
				b.Errorf("Fenced on a store without tokens, Wait(%v): %v", wait, err)
			}
			synctest.Wait()
			b.free(lk, "k")
		}
	})
}

func TestPrefix(t *testing.T) {
	simulate(t, func(b *bench) {
		a, plain := b.open(&Options{Prefix: "a/"}), b.open(nil)
		l := b.lock(a, "k")
		b.free(plain, "k")
		if _, err := plain.TryLock(b.Context(), "a/k"); !errors.Is(err, ErrHeld) {
			b.Errorf("the stored key is not prefix and key: %v", err)
		}
		var keys []string
		for key, err := range a.Keys(b.Context(), "") {
			if err != nil {
				b.Fatal(err)
			}
			keys = append(keys, key)
		}
		if len(keys) != 1 || keys[0] != "k" || l.Key() != "k" {
			b.Errorf("Keys %q, Key %q; want k", keys, l.Key())
		}
		b.unlock(l)
	})
}
