package holdfast

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/must"
)

func TestLockExcludesOtherLockers(t *testing.T) {
	simulate(t, func(b *bench) {
		one, two := b.open(&Options{Owner: "one"}), b.open(&Options{Owner: "two"})
		first := b.lock(one, "k", Note("nightly"))
		_, err := two.TryLock(b.Context(), "k")
		var held *HeldError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &held) {
			b.Fatalf("TryLock of a held key: %v, want ErrHeld", err)
		}
		if held.Owner != "one" || held.Note != "nightly" || held.Left <= 0 || held.Since.IsZero() {
			b.Errorf("refusal says %+v, want owner one, note nightly, a time left and a start", held)
		}
		b.unlock(first)
		second := b.lock(two, "k")
		if second.hold.Token() <= first.hold.Token() {
			b.Errorf("fence fell from %d to %d", first.hold.Token(), second.hold.Token())
		}
		b.unlock(second)
	})
}

func TestTryLockHeldHereAsksNoStore(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(&Options{Owner: "me"})
		l := b.lock(lk, "k", Note("mine"))
		b.store.seen()
		_, err := lk.TryLock(b.Context(), "k")
		var held *HeldError
		if !errors.As(err, &held) || held.Owner != "me" || held.Note != "mine" || held.Left <= 0 {
			b.Errorf("TryLock: %v, want held by me with note and time left", err)
		}
		if c := b.store.seen(); c.acquire != 0 {
			b.Errorf("the store was asked %d times", c.acquire)
		}
		b.unlock(l)
	})
}

func TestTryLockSharedBesideShared(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		one := b.lock(lk, "k", Shared())
		two, err := lk.TryLock(b.Context(), "k", Shared())
		if err != nil {
			b.Fatalf("second reader: %v", err)
		}
		if one.Fence() != two.Fence() {
			b.Errorf("readers of one phase have tokens %d and %d", one.Fence(), two.Fence())
		}
		if _, err := lk.TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Errorf("writer beside readers: %v", err)
		}
		b.unlock(one)
		b.unlock(two)
		b.free(lk, "k")
	})
}

func TestUnlockEndsEverything(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k")
		ctx := l.Context(b.Context())
		if got, ok := FromContext(ctx); !ok || got != l {
			b.Error("FromContext does not return the lock")
		}
		if l.Err() != nil || l.Fence() == 0 || ended(l) || l.Key() != "k" {
			b.Errorf("held lock: Err %v, Fence %d, ended %v, Key %q", l.Err(), l.Fence(), ended(l), l.Key())
		}
		b.unlock(l)
		if err := l.Err(); !errors.Is(err, ErrReleased) {
			b.Errorf("Err after Unlock: %v", err)
		}
		if !ended(l) || l.Fence() != 0 {
			b.Errorf("after Unlock: ended %v, Fence %d", ended(l), l.Fence())
		}
		if err := context.Cause(ctx); !errors.Is(err, ErrReleased) {
			b.Errorf("cause of the lock's context: %v", err)
		}
		if err := l.Unlock(); !errors.Is(err, ErrReleased) {
			b.Errorf("second Unlock: %v, want ErrReleased", err)
		}
		late := l.Context(b.Context())
		if err := context.Cause(late); !errors.Is(err, ErrReleased) {
			b.Errorf("context made after Unlock: cause %v", err)
		}
	})
}

func TestSecondUnlockLeavesTheNextHolderAlone(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		first := b.lock(lk, "k")
		b.unlock(first)
		second := b.lock(lk, "k")
		_ = first.Unlock()
		synctest.Wait()
		if err := second.Err(); err != nil {
			b.Errorf("a second Unlock of the first lock ended the second: %v", err)
		}
		if _, err := b.open(nil).TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Errorf("a second Unlock of the first lock freed the key: %v", err)
		}
		b.unlock(second)
	})
}

func TestLockEndsWithItsContext(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(other, "k")
		for _, from := range []*Locker{lk, other} { // at the store, and in the queue here
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			_, err := from.Lock(ctx, "k")
			cancel()
			if !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				b.Errorf("cut wait: %v, want ErrHeld and the context's error", err)
			}
		}
		b.unlock(l)
		b.free(lk, "k")
	})
}

func TestCloseReleasesAndRefuses(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		held, broken := b.lock(lk, "held"), b.lock(lk, "broken")
		if err := lk.Break(b.Context(), "broken", broken.ID()); err != nil {
			b.Fatal(err)
		}
		foreign := b.lock(other, "foreign")
		waits := make(chan error)
		for _, key := range []string{"held", "held", "foreign", "foreign"} {
			go func() { _, err := lk.Lock(context.Background(), key); waits <- err }()
		}
		synctest.Wait()
		if err := lk.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
		for range 4 {
			if err := <-waits; !errors.Is(err, ErrClosed) {
				b.Errorf("wait at Close: %v, want ErrClosed", err)
			}
		}
		if err := held.Err(); !errors.Is(err, ErrClosed) || !ended(held) {
			b.Errorf("lock after Close: Err %v, ended %v", err, ended(held))
		}
		if err := held.Unlock(); !errors.Is(err, ErrClosed) {
			b.Errorf("Unlock after Close: %v", err)
		}
		if err := broken.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock after Close of a lock that was lost before: %v, want ErrLost", err)
		}
		b.free(other, "held")
		b.unlock(foreign)
		b.free(other, "foreign")
		_, lockErr := lk.Lock(b.Context(), "k")
		_, tryErr := lk.TryLock(b.Context(), "k")
		_, allErr := lk.LockAll(b.Context(), []string{"k"})
		_, holdersErr := lk.Holders(b.Context(), "k")
		doErr := lk.Do(b.Context(), "k", func(context.Context) error { return nil })
		for i, err := range []error{lockErr, tryErr, allErr, holdersErr, doErr, lk.Break(b.Context(), "k", "id")} {
			if !errors.Is(err, ErrClosed) {
				b.Errorf("call %d after Close: %v, want ErrClosed", i, err)
			}
		}
		for _, err := range lk.Keys(b.Context(), "") {
			if !errors.Is(err, ErrClosed) {
				b.Errorf("Keys after Close: %v, want ErrClosed", err)
			}
		}
		if err := lk.Close(); err != nil {
			b.Errorf("second Close: %v", err)
		}
	})
}

func TestDo(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(&Options{TTL: 3 * time.Second})
		boom := errors.New("boom")
		err := lk.Do(b.Context(), "k", func(ctx context.Context) error {
			if l, ok := FromContext(ctx); !ok || l.Err() != nil {
				b.Error("the context of Do carries no live lock")
			}
			return boom
		})
		if !errors.Is(err, boom) {
			b.Errorf("Do: %v, want boom", err)
		}
		err = lk.Do(b.Context(), "k", func(ctx context.Context) error {
			b.store.set(func(f *faulty) { f.renew = hangs })
			<-ctx.Done()
			return nil // does not notice
		})
		if !errors.Is(err, ErrLost) {
			b.Errorf("Do whose lock was lost: %v, want ErrLost", err)
		}
		b.store.set(func(f *faulty) { f.renew = nil })
		func() {
			defer func() { _ = recover() }()
			_ = lk.Do(b.Context(), "k2", func(context.Context) error { panic("in fn") })
		}()
		b.free(lk, "k2")
	})
}

func hangs[T any](ctx context.Context, rs []T, _ func() []error) []error {
	return all(rs, hang(ctx))
}

func TestHoldersAndBreak(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(&Options{Owner: "one"}), b.open(&Options{Owner: "two"})
		l := b.lock(lk, "k")
		got := make(chan *Lock)
		go func() { got <- b.lock(other, "k") }()
		synctest.Wait()
		holders, err := other.Holders(b.Context(), "k")
		if err != nil || len(holders) != 2 || holders[0].ID != l.ID() || holders[0].Owner != "one" || !holders[1].Waiting {
			b.Fatalf("Holders: %+v, %v; want one holding, two waiting", holders, err)
		}
		if err := other.Break(b.Context(), "k", "nobody"); !errors.Is(err, ErrLost) {
			b.Errorf("Break of nobody: %v, want ErrLost", err)
		}
		if err := other.Break(b.Context(), "k", l.ID()); err != nil {
			b.Fatalf("Break: %v", err)
		}
		<-l.Done()
		var lost *LostError
		if err := l.Err(); !errors.As(err, &lost) || lost.Reason != LossBroken {
			b.Errorf("Err of a broken lock: %v", err)
		}
		next := <-got
		if next.Fence() <= l.hold.Token() {
			b.Errorf("token after Break %d, before %d", next.Fence(), l.hold.Token())
		}
		if err := l.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock of a broken lock: %v", err)
		}
		synctest.Wait()
		if err := next.Err(); err != nil {
			b.Errorf("Unlock of a broken lock hurt the next holder: %v", err)
		}
		b.unlock(next)
	})
}

// A store that does not answer holds Close up for seconds, however many locks
// there are.
func TestCloseIsBoundedWhenTheStoreHangs(t *testing.T) {
	for name, opts := range map[string][]LockOption{"released": nil, "left": {MinHold(time.Hour)}} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				lk := must.Get(New(unclosed{b.store}, &Options{TTL: time.Hour}))
				for i := range 10 * engine.MaxBatch {
					b.lock(lk, fmt.Sprint(i), opts...)
				}
				b.store.set(func(f *faulty) { f.release, f.renew = hangs, hangs })
				began := time.Now()
				err := lk.Close()
				if d := since(began); err == nil || d > 5*time.Second {
					b.Errorf("Close took %v and says %v", d, err)
				}
			})
		})
	}
}

func TestUnlockIsBoundedWhenTheStoreHangs(t *testing.T) {
	simulate(t, func(b *bench) {
		l := b.lock(b.open(nil), "k")
		b.store.set(func(f *faulty) { f.release = hangs })
		began := time.Now()
		err := l.Unlock()
		if d := since(began); !silent(err) || d > 3200*time.Millisecond {
			b.Errorf("Unlock took %v and says %v", d, err)
		}
		b.store.set(func(f *faulty) { f.release = nil })
	})
}

// The store keeps the id of a broken claim out, so a caller who went on asking
// with it would sleep on while the key is free.
func TestBrokenWaiterIsSentAway(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		held := b.lock(lk, "k")
		first, second := make(chan error), make(chan error)
		wait := func(done chan<- error) {
			l, err := other.Lock(b.Context(), "k")
			if err == nil {
				err = l.Unlock()
			}
			done <- err
		}
		go wait(first)
		synctest.Wait()
		go wait(second) // in the queue of the same process
		synctest.Wait()
		holders, err := lk.Holders(b.Context(), "k")
		if err != nil || len(holders) != 2 {
			b.Fatalf("Holders: %v, %v; want one that holds and one that waits", holders, err)
		}
		broken := time.Now()
		if err := lk.Break(b.Context(), "k", holders[1].ID); err != nil {
			b.Fatal(err)
		}
		var why *LostError
		if err := <-first; !errors.As(err, &why) || why.Reason != LossBroken || since(broken) > time.Second {
			b.Errorf("%v after Break the waiter got %v", since(broken), err)
		}
		synctest.Wait()
		freed := time.Now()
		b.unlock(held)
		if err := <-second; err != nil || since(freed) > time.Second {
			b.Errorf("%v after the release the next waiter got %v", since(freed), err)
		}
	})
}

// A claim in the queue that has ended for another reason is replaced.
func TestLostPlaceIsTakenAnew(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		held := b.lock(lk, "k")
		var id string
		b.store.set(func(f *faulty) {
			f.acquire = func(_ context.Context, c driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				id = c.ID
				return next()
			}
		})
		got := make(chan *Lock)
		go func() { got <- b.lock(other, "k") }()
		synctest.Wait()
		lost := id
		b.store.Store.Release(b.Context(), []driver.Release{{Claim: driver.Claim{Key: "k", ID: lost}, Late: true}})
		b.store.tell("k", lost, driver.ErrLost)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if id == lost {
			b.Error("it still asks with the id that is gone")
		}
		freed := time.Now()
		b.unlock(held)
		b.unlock(<-got)
		if since(freed) > time.Second {
			b.Errorf("the waiter slept %v past the release", since(freed))
		}
	})
}
