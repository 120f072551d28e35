package holdfast

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/must"
)

// pushed returns a lock that the store has granted to one who waited for it.
func (b *bench) pushed(lk, other *Locker, opts ...LockOption) *Lock {
	b.Helper()
	l := b.lock(other, "k")
	got := make(chan *Lock)
	go func() { got <- b.lock(lk, "k", opts...) }()
	synctest.Wait()
	b.unlock(l)
	return <-got
}

// A claim that is granted in the queue stands for a short time until it is
// confirmed, and for its TTL from then on.
func TestPushedLockGetsItsWholeTTL(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		pushed := func(opts ...LockOption) *Lock {
			l := b.pushed(lk, other, opts...)
			if left, _ := l.hold.Remaining(); left < 2*time.Second || left > 3*time.Second {
				b.Errorf("the lock has %v of 3s", left)
			}
			time.Sleep(engine.ConfirmAfter)
			synctest.Wait()
			if left, _ := l.hold.Remaining(); left < 14*time.Second {
				b.Errorf("the lock has %v of 15s", left)
			}
			return l
		}
		l := pushed()
		b.store.seen()
		time.Sleep(time.Hour)
		if c := b.store.seen(); c.renew > 3600/4 {
			b.Errorf("%d renewals in an hour, want one every 5s", c.renew)
		}
		b.unlock(l)

		l = pushed(NoRenew())
		time.Sleep(14 * time.Second)
		if err := l.Err(); err != nil {
			b.Errorf("lost before its TTL: %v", err)
		}
		time.Sleep(time.Second)
		if err := l.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock after the TTL: %v, want ErrLost", err)
		}
	})
}

// A claim that goes back soon is never confirmed, also if it has served several
// callers.
func TestBriefPushedLockIsNotConfirmed(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		for range 20 {
			before := b.lock(other, "k")
			got := make(chan *Lock)
			for range 2 {
				go func() { got <- b.lock(lk, "k") }()
			}
			time.Sleep(2 * time.Second) // the claim asks again, for two tokens now
			b.unlock(before)
			first := <-got
			time.Sleep(engine.MaxTurn / 2)
			b.unlock(first)
			second := <-got
			if second.ID() != first.ID() {
				b.Error("the claim was not handed over")
			}
			time.Sleep(engine.MaxTurn / 2)
			b.unlock(second)
			b.free(other, "k")
		}
		time.Sleep(time.Minute)
		if c := b.store.seen(); c.renew > 0 {
			b.Errorf("%d renewals, want none", c.renew)
		}
	})
}

// A lock that cannot be confirmed is lost before the store lets in another.
func TestPushedLockThatIsNotConfirmedIsLostInTime(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		b.store.set(func(f *faulty) {
			f.renew = func(_ context.Context, rs []driver.Renewal, _ func() []error) []error { return all(rs, errDown) }
		})
		l := b.pushed(lk, other)
		granted := time.Now()
		b.unlock(b.lock(other, "k"))
		if d := time.Since(granted); d > 3*time.Second+10*time.Millisecond {
			b.Errorf("the next one had it after %v, want 3s", d)
		}
		if !ended(l) || !errors.Is(l.Err(), ErrLost) {
			b.Errorf("the lock of another is still held: %v", l.Err())
		}
	})
}

// A push that was held up tells of a grant that is about to run out: the caller
// gets the lock only once it was asked for again.
func TestLatePushIsAskedForAgain(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(other, "k")
		delay := 2500 * time.Millisecond
		var arrived atomic.Bool
		b.store.set(func(f *faulty) {
			f.wake = func(g driver.Grant, next func(driver.Grant)) {
				time.AfterFunc(delay, func() { arrived.Store(true); next(g) })
			}
			n := 0
			f.acquire = func(_ context.Context, c driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				if n++; n > 2 && !arrived.Load() {
					return driver.Grant{}, errDown // no heartbeat gets through
				}
				return next()
			}
		})
		got := make(chan *Lock)
		go func() { got <- b.lock(lk, "k") }()
		synctest.Wait()
		b.unlock(l)
		next := <-got
		if left, _ := next.hold.Remaining(); left < 7*time.Second {
			b.Errorf("handed over with %v left of 15s", left)
		}
		time.Sleep(time.Minute)
		if err := next.Err(); err != nil {
			b.Errorf("lost: %v", err)
		}
		b.unlock(next)
	})
}

// A clock of the store that was set may make a grant look as if it had run out
// before it was made. The caller asks again.
func TestPushedGrantThatHasRunOut(t *testing.T) {
	for _, ttl := range []time.Duration{-3 * time.Second, -1, 1, 14} {
		simulate(t, func(b *bench) {
			lk, other := b.open(nil), b.open(nil)
			b.store.set(func(f *faulty) {
				f.wake = func(g driver.Grant, next func(driver.Grant)) {
					if g.OK {
						g.TTL = ttl
					}
					next(g)
				}
			})
			l := b.pushed(lk, other)
			if left, _ := l.hold.Remaining(); left < 7*time.Second {
				b.Errorf("after a push with a TTL of %v, handed over with %v left of 15s", ttl, left)
			}
			b.unlock(l)
		})
	}
}

// A push that came before the store refused tells of a grant that may have run
// out by then: here because the store had failed for so long.
func TestPushBeforeARefusalIsNotBelieved(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other, third := b.open(nil), b.open(nil), b.open(nil)
		before := b.lock(other, "k")
		got := make(chan *Lock, 1)
		go func() { got <- b.lock(lk, "k") }()
		synctest.Wait()

		var late func() // delivers the push
		b.store.set(func(f *faulty) {
			f.wake = func(g driver.Grant, next func(driver.Grant)) { late = func() { next(g) } }
		})
		b.unlock(before)
		synctest.Wait()
		if late == nil {
			b.Fatal("nothing was pushed")
		}
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, _ driver.Ask, _ func() (driver.Grant, error)) (driver.Grant, error) {
				return driver.Grant{}, hang(ctx)
			}
		})
		time.Sleep(4 * time.Second)
		b.store.set(func(f *faulty) { f.acquire = nil })
		held, err := third.TryLock(b.Context(), "k")
		if err != nil {
			b.Fatalf("the grant that was pushed has not run out: %v", err)
		}
		var once sync.Once
		b.store.set(func(f *faulty) {
			f.acquire = func(_ context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				once.Do(late)
				return next()
			}
		})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		select {
		case <-got:
			b.Fatal("two hold the key")
		default:
		}
		b.store.set(func(f *faulty) { f.acquire, f.wake = nil, nil })
		b.unlock(held)
		b.unlock(<-got)
	})
}

// The refusal after a grant that was never heard of may not be heard of, either.
// Then a push tells of that grant while the store has made another.
func TestPushBeforeARefusalThatIsNotHeard(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other, third := b.open(nil), b.open(nil), b.open(nil)
		before := b.lock(other, "k")
		got := make(chan *Lock, 1)
		go func() { got <- b.lock(lk, "k") }()
		synctest.Wait()

		var late func() // delivers the first push
		away := func(ctx context.Context, _ driver.Ask, _ func() (driver.Grant, error)) (driver.Grant, error) {
			return driver.Grant{}, hang(ctx)
		}
		b.store.set(func(f *faulty) {
			f.wake = func(g driver.Grant, next func(driver.Grant)) {
				if late == nil {
					late = func() { next(g) }
				}
			}
			f.acquire = away
		})
		b.unlock(before)
		time.Sleep(4 * time.Second)
		b.store.set(func(f *faulty) { f.acquire = nil })
		held, err := third.TryLock(b.Context(), "k")
		if err != nil {
			b.Fatalf("the grant that was pushed has not run out: %v", err)
		}
		fence := held.Fence()
		var once sync.Once
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				_, err := next() // It starts in the queue again,
				once.Do(func() {
					b.unlock(held) // and has its turn.
					b.store.set(func(f *faulty) { f.acquire = nil })
					late()
				})
				return driver.Grant{}, errors.Join(err, errDown)
			}
		})
		l := <-got
		if l.Fence() <= fence {
			b.Errorf("token %d after %d", l.Fence(), fence)
		}
		b.unlock(l)
	})
}

// A store that never answers to a watch keeps nobody from asking it for the lock.
func TestWatchThatIsNotAnswered(t *testing.T) {
	simulate(t, func(b *bench) {
		holder := b.open(nil)
		waiter := must.Get(New(unanswered{unclosed{b.store}}, &Options{Logger: slog.New(slog.DiscardHandler)}))
		defer waiter.Close()
		l := b.lock(holder, "k")
		got := make(chan *Lock, 1)
		go func() { got <- b.lock(waiter, "k") }()
		time.Sleep(time.Minute)
		b.unlock(l)
		time.Sleep(2 * time.Second)
		select {
		case l := <-got:
			b.unlock(l)
		default:
			b.Fatal("the waiter waits for its watch, and not for the lock")
		}
	})
}

// unanswered is a store that never answers to a watch.
type unanswered struct{ unclosed }

func (unanswered) Watch(ctx context.Context, _ driver.Claim, _ func(driver.Grant)) (func(), error) {
	return nil, hang(ctx)
}

// The log warns of a store that refuses a watch, not of a watch that is cut short.
func TestWatchThatIsCutShortIsNotWarnedOf(t *testing.T) {
	refused := errors.New("no permission")
	slow := func(ctx context.Context) error { return errors.Join(hang(ctx), errors.New("not confirmed yet")) }
	for name, test := range map[string]struct {
		watch func(ctx context.Context) error
		opts  []LockOption
		warns bool
	}{
		"by its limit": {slow, nil, false},
		"by Wait":      {slow, []LockOption{Wait(300 * time.Millisecond)}, false},
		"by a refusal": {func(context.Context) error { return refused }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				var said bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))
				defer b.unlock(b.lock(b.open(nil), "k"))
				waiter := b.open(&Options{Logger: logger})
				b.store.set(func(f *faulty) { f.watch = test.watch })
				ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
				defer cancel()
				if _, err := waiter.Lock(ctx, "k", test.opts...); err == nil {
					b.Fatal("two processes have the lock")
				}
				if n := strings.Count(said.String(), "cannot be woken by the store"); n > 1 || n == 1 != test.warns {
					b.Errorf("the log says %q; want a warning: %v", said.String(), test.warns)
				}
			})
		})
	}
}
