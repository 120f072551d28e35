package holdfast

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
)

var errDown = errors.New("connection refused")

// An Acquire whose answer was lost has taken the lock for nobody: it is asked
// for again with the same id, or released.
func TestLostAnswerOfAcquire(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		losses := 0
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				g, err := next()
				if losses > 0 {
					losses--
					return driver.Grant{}, hang(ctx)
				}
				return g, err
			}
		})
		losses = 1
		start := time.Now()
		l := b.lock(lk, "k")
		if got := time.Since(start); got > 3*time.Second {
			b.Errorf("Lock took %v after one lost answer: it was blocked by its own claim", got)
		}
		b.unlock(l)

		losses = 1
		if _, err := lk.TryLock(b.Context(), "k"); err == nil || errors.Is(err, ErrHeld) {
			b.Errorf("TryLock whose answer was lost: %v, want the store's error", err)
		}
		synctest.Wait()
		b.free(other, "k")

		losses = 1000
		ctx, cancel := context.WithTimeout(b.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := lk.Lock(ctx, "k"); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrHeld) {
			b.Errorf("Lock whose context ended before any answer: %v, want the context's error alone", err)
		}
		losses = 0
		synctest.Wait()
		b.free(other, "k")
	})
}

// An Acquire that reaches the store after its caller has given up is refused.
func TestLateAcquireLeavesNoGhost(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		arrived := make(chan error)
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, c driver.Ask, _ func() (driver.Grant, error)) (driver.Grant, error) {
				go func() {
					time.Sleep(5 * time.Second)
					g, err := f.Store.Acquire(context.Background(), c)
					if g.OK {
						err = errors.New("granted")
					}
					arrived <- err
				}()
				return driver.Grant{}, hang(ctx)
			}
		})
		if _, err := lk.TryLock(b.Context(), "k"); err == nil {
			b.Fatal("TryLock without an answer succeeded")
		}
		b.store.set(func(f *faulty) { f.acquire = nil })
		if err := <-arrived; err != nil {
			b.Errorf("the late Acquire: %v", err)
		}
		b.free(other, "k")
	})
}

// A claim that the store was never asked for need not be released. A claim that the store
// may know must be.
func TestUnwrittenLeavesNothing(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		unwritten := fmt.Errorf("%w: %w", driver.ErrUnwritten, errDown)
		for _, test := range []struct {
			name     string
			answers  []error // the last for all that follow
			call     func(context.Context, string, ...LockOption) (*Lock, error)
			released int
		}{
			{"TryLock", []error{unwritten}, lk.TryLock, 0},
			{"Lock", []error{unwritten}, lk.Lock, 0},
			{"Lock that was not answered before", []error{errDown, unwritten}, lk.Lock, 1},
			{"Lock that was not answered later", []error{unwritten, errDown, unwritten}, lk.Lock, 1},
		} {
			b.store.set(func(f *faulty) {
				f.acquire = func(context.Context, driver.Ask, func() (driver.Grant, error)) (driver.Grant, error) {
					err := test.answers[0]
					test.answers = test.answers[min(1, len(test.answers)-1):]
					return driver.Grant{}, err
				}
			})
			b.store.seen()
			_, err := test.call(b.Context(), "k")
			if !errors.Is(err, errDown) {
				b.Errorf("%s: %v, want the store's error", test.name, err)
			}
			synctest.Wait()
			if seen := b.store.seen(); seen.release != test.released {
				b.Errorf("%s: %d releases, want %d", test.name, seen.release, test.released)
			}
		}
		b.store.set(func(f *faulty) { f.acquire = nil })
		b.free(other, "k")
	})
}

func TestReleaseIsTriedAgain(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		failures := 0
		applied := false
		b.store.set(func(f *faulty) {
			f.release = func(_ context.Context, rs []driver.Release, next func() []error) []error {
				if failures == 0 {
					return next()
				}
				failures--
				if applied {
					next() // and the answer is lost
				}
				return all(rs, errDown)
			}
		})
		for _, applied = range []bool{false, true} {
			failures = 1
			l := b.lock(lk, "k")
			if err := l.Unlock(); err != nil {
				b.Errorf("applied %v: Unlock whose first try failed: %v", applied, err)
			}
			b.free(other, "k")
		}
		applied, failures = false, 10
		l := b.lock(lk, "k")
		if err := l.Unlock(); !errors.Is(err, errDown) {
			b.Errorf("Unlock that never got through: %v, want the store's error", err)
		}
		time.Sleep(10 * time.Second) // less than the TTL: the release went on
		b.free(other, "k")
	})
}

func TestUnlockAfterCancelledContext(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		ctx, cancel := context.WithCancel(b.Context())
		l, err := lk.Lock(ctx, "k")
		if err != nil {
			b.Fatal(err)
		}
		cancel()
		time.Sleep(time.Minute)
		if err := l.Err(); err != nil {
			b.Errorf("the lock ended with the context that it was taken with: %v", err)
		}
		b.unlock(l)
		b.free(other, "k")
	})
}

func TestEndedContextAsksNoStore(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if _, err := lk.Lock(ctx, "k"); !errors.Is(err, context.Canceled) {
			b.Errorf("Lock: %v", err)
		}
		if c := b.store.seen(); c.acquire != 0 {
			b.Errorf("the store was asked %d times", c.acquire)
		}
	})
}

// A store that is away fails a new call soon, and one that waits late.
func TestPatienceWithABrokenStore(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		fail := func(context.Context, driver.Ask, func() (driver.Grant, error)) (driver.Grant, error) {
			return driver.Grant{}, errDown
		}
		b.store.set(func(f *faulty) { f.acquire = fail })
		start := time.Now()
		if _, err := lk.Lock(b.Context(), "k"); !errors.Is(err, errDown) {
			b.Errorf("Lock on a dead store: %v", err)
		}
		if got := time.Since(start); got < 3*time.Second || got > 4*time.Second {
			b.Errorf("told after %v, want three seconds", got)
		}
		b.store.set(func(f *faulty) { f.acquire = nil })

		l := b.lock(other, "k")
		got := make(chan *Lock)
		go func() { got <- b.lock(lk, "k") }()
		synctest.Wait()
		b.store.set(func(f *faulty) { f.acquire = fail })
		time.Sleep(10 * time.Second)
		b.store.set(func(f *faulty) { f.acquire = nil })
		b.unlock(l)
		b.unlock(<-got)

		l = b.lock(other, "k")
		failed := make(chan error)
		go func() { _, err := lk.Lock(context.Background(), "k"); failed <- err }()
		synctest.Wait()
		b.store.set(func(f *faulty) { f.acquire = fail })
		if err := <-failed; !errors.Is(err, errDown) {
			b.Errorf("wait on a store that stays away: %v", err)
		}
		b.store.set(func(f *faulty) { f.acquire = nil })
		b.unlock(l)
	})
}

func TestInvalidClaimIsNotTriedAgain(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		b.store.set(func(f *faulty) {
			f.acquire = func(context.Context, driver.Ask, func() (driver.Grant, error)) (driver.Grant, error) {
				return driver.Grant{}, driver.ErrInvalid
			}
			f.release = func(context.Context, []driver.Release, func() []error) []error { return []error{driver.ErrInvalid} }
		})
		start := time.Now()
		if _, err := lk.Lock(b.Context(), "k"); !errors.Is(err, driver.ErrInvalid) || time.Since(start) != 0 {
			b.Errorf("Lock: %v after %v, want ErrInvalid at once", err, since(start))
		}
		if err := lk.Close(); err != nil || time.Since(start) != 0 {
			b.Errorf("Close: %v after %v, want nothing to clean up", err, since(start))
		}
	})
}

// Every push is lost: the heartbeat finds the grant.
func TestLostWakeUpCostsOneHeartbeat(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		b.store.set(func(f *faulty) { f.wake = func(driver.Grant, func(driver.Grant)) {} })
		for range 20 {
			l := b.lock(other, "k")
			got := make(chan *Lock)
			go func() { got <- b.lock(lk, "k") }()
			synctest.Wait()
			time.Sleep(1234 * time.Millisecond)
			b.unlock(l)
			start := time.Now()
			b.unlock(<-got)
			if d := time.Since(start); d > time.Second {
				b.Errorf("slept %v past a release", d)
			}
		}
	})
}

// Far back in a queue a contender asks more rarely, is granted in its turn all the same, and
// its lock is not at risk.
func TestLongQueueAsksRarely(t *testing.T) {
	simulate(t, func(b *bench) {
		const waiters = 60
		l := b.lock(b.open(nil), "k")
		var all sync.WaitGroup
		for range waiters {
			lk := b.open(&Options{Trace: &Trace{AtRisk: func(e Event) { b.Errorf("at risk after %v", e.Held) }}})
			all.Go(func() {
				l := b.lock(lk, "k")
				time.Sleep(time.Millisecond)
				b.unlock(l)
			})
		}
		time.Sleep(30 * time.Second)
		b.store.seen()
		time.Sleep(30 * time.Second)
		if asked := b.store.seen().acquire; asked > 30*waiters/2 {
			b.Errorf("%d waiters asked %d times in 30s", waiters, asked)
		}
		b.unlock(l)
		all.Wait()
	})
}

func TestDeadHolderIsFollowedAtItsTTL(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, dead := b.open(nil), b.open(nil)
		before := b.lock(dead, "k", NoRenew(), TTL(10*time.Second)).Fence() // nobody renews or unlocks
		start := time.Now()
		next := b.lock(lk, "k")
		if got := time.Since(start); got < 10*time.Second || got > 10*time.Second+10*time.Millisecond {
			b.Errorf("followed after %v, want 10s", got)
		}
		if next.Fence() <= before {
			b.Errorf("token %d after %d", next.Fence(), before)
		}
		b.unlock(next)
	})
}

func TestBareStoreCannotShow(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := must.Get(New(mute{b.store}, nil))
		defer lk.Close()
		_, holdersErr := lk.Holders(b.Context(), "k")
		for _, err := range []error{holdersErr, lk.Break(b.Context(), "k", "id")} {
			if !errors.Is(err, errors.ErrUnsupported) {
				b.Errorf("%v, want ErrUnsupported", err)
			}
		}
		for _, err := range lk.Keys(b.Context(), "") {
			if !errors.Is(err, errors.ErrUnsupported) {
				b.Errorf("Keys: %v, want ErrUnsupported", err)
			}
		}
	})
}
