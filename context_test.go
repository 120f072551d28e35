package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLockUnderItsOwnContextIsRefused(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k")
		ctx := l.Context(b.Context())
		_, lockErr := lk.Lock(ctx, "k")
		_, tryErr := lk.TryLock(ctx, "k")
		_, sharedErr := lk.Lock(ctx, "k", Shared())
		_, groupErr := lk.LockAll(ctx, []string{"a", "k"})
		for i, err := range []error{lockErr, tryErr, sharedErr, groupErr} {
			if !errors.Is(err, ErrDeadlock) {
				b.Errorf("call %d: %v, want ErrDeadlock", i, err)
			}
		}
		b.free(lk, "a")
		// Another key, another Locker, another context: strangers.
		b.unlock(b.lockCtx(ctx, lk, "k2"))
		if _, err := other.TryLock(ctx, "k"); !errors.Is(err, ErrHeld) {
			b.Errorf("another Locker under the same context: %v, want ErrHeld", err)
		}
		if _, err := lk.TryLock(b.Context(), "k", Reenter()); !errors.Is(err, ErrHeld) {
			b.Errorf("Reenter without the lock's context: %v, want ErrHeld", err)
		}
		b.unlock(l)
	})
}

func (b *bench) lockCtx(ctx context.Context, lk *Locker, key string, opts ...LockOption) *Lock {
	b.Helper()
	l, err := lk.Lock(ctx, key, opts...)
	if err != nil {
		b.Fatalf("Lock(%q): %v", key, err)
	}
	return l
}

func TestReenterCounts(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		outer := b.lock(lk, "k")
		ctx := outer.Context(b.Context())
		b.store.seen()
		inner := b.lockCtx(ctx, lk, "k", Reenter())
		third := b.lockCtx(inner.Context(ctx), lk, "k", Reenter(), Shared())
		if c := b.store.seen(); c.acquire != 0 {
			b.Errorf("entering again asked the store %d times", c.acquire)
		}
		if inner.Fence() != outer.Fence() || third.Fence() != outer.Fence() {
			b.Errorf("tokens %d, %d, %d; want the same", outer.Fence(), inner.Fence(), third.Fence())
		}
		b.unlock(inner)
		if err := inner.Unlock(); !errors.Is(err, ErrReleased) {
			b.Errorf("second Unlock of an inner lock: %v", err)
		}
		if err := inner.Err(); !errors.Is(err, ErrReleased) {
			b.Errorf("Err of an unlocked inner lock: %v", err)
		}
		b.unlock(outer) // out of order: third still holds
		if third.Err() != nil || ended(third) {
			b.Errorf("the last handle: %v, ended %v", third.Err(), ended(third))
		}
		if _, err := other.TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Errorf("the key is free although one handle holds: %v", err)
		}
		b.unlock(third)
		b.free(other, "k")
		if ctx.Err() == nil {
			b.Error("the lock's context goes on after the last Unlock")
		}
	})
}

func TestReenterNeverUpgrades(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		r := b.lock(lk, "k", Shared())
		ctx := r.Context(b.Context())
		if _, err := lk.Lock(ctx, "k", Reenter()); !errors.Is(err, ErrDeadlock) {
			b.Errorf("exclusive inside shared: %v, want ErrDeadlock", err)
		}
		b.unlock(b.lockCtx(ctx, lk, "k", Reenter(), Shared()))
		b.unlock(r)
	})
}

func TestReenterAfterLossIsAStranger(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k", NoRenew(), TTL(time.Second))
		carried := l.Context(context.Background())
		<-l.Done()
		ctx := context.WithoutCancel(carried)
		again, err := lk.Lock(ctx, "k", Reenter())
		if err != nil {
			b.Fatalf("Lock under a lost lock's context: %v", err)
		}
		if again.hold == l.hold || again.Fence() <= l.hold.Token() {
			b.Errorf("a lost lock was entered again")
		}
		b.unlock(again)
	})
}

func TestContextsThatEndFirstAreForgotten(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "leader")
		live := l.Context(b.Context())
		for range 1000 {
			ctx, cancel := context.WithCancel(b.Context())
			l.Context(ctx)
			cancel()
		}
		if n := l.hold.Contexts(); n > 4 {
			b.Errorf("the lock keeps %d contexts that have ended", n-1)
		}
		time.Sleep(6 * time.Second) // past the first renewal
		synctest.Wait()
		if n := l.hold.Contexts(); n != 1 || live.Err() != nil {
			b.Errorf("after a renewal the lock keeps %d contexts, want the one that lives (%v)", n, live.Err())
		}
		b.unlock(l)
		if !errors.Is(context.Cause(live), ErrReleased) {
			b.Errorf("the cause of the end is %v, want ErrReleased", context.Cause(live))
		}
	})
}

func TestContextCarriesTheLock(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		type key struct{}
		outer, inner := b.lock(lk, "outer"), b.lock(other, "inner")
		ctx := inner.Context(outer.Context(context.WithValue(b.Context(), key{}, "value")))
		if l, ok := FromContext(ctx); !ok || l != inner || ctx.Value(key{}) != "value" {
			b.Errorf("the context carries %v, %v, %v", l, ok, ctx.Value(key{}))
		}
		if text := fmt.Sprint(ctx); !strings.HasSuffix(text, `.WithLock("inner")`) {
			b.Errorf("the context is called %s", text)
		}
		below, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		b.unlock(outer)
		if err := context.Cause(below); !errors.Is(err, ErrReleased) || !strings.Contains(err.Error(), `"outer"`) || below.Err() != context.Canceled {
			b.Errorf("a context below ended with %v: %v, want the end of the outer lock", below.Err(), err)
		}
		if late := outer.Context(b.Context()); !errors.Is(context.Cause(late), ErrReleased) {
			b.Errorf("the context of a lock that has ended: %v", context.Cause(late))
		}
		b.unlock(inner)
	})
}
