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
)

var errDown = errors.New("connection refused")

// An Acquire whose answer was lost has taken the lock for nobody: it is asked
// for again with the same id, or released.
func TestLostAnswerOfAcquire(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		losses := 0
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, _ driver.Claim, next func() (driver.Grant, error)) (driver.Grant, error) {
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
			f.acquire = func(ctx context.Context, c driver.Claim, _ func() (driver.Grant, error)) (driver.Grant, error) {
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

// What the store was never asked for need not be released, what it may have heard of
// before must be.
func TestNotAskedLeavesNothing(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		notAsked := fmt.Errorf("%w: %w", driver.ErrNotAsked, errDown)
		for _, test := range []struct {
			name     string
			answers  []error // the last for all that follow
			call     func(context.Context, string, ...LockOption) (*Lock, error)
			released int
		}{
			{"TryLock", []error{notAsked}, lk.TryLock, 0},
			{"Lock", []error{notAsked}, lk.Lock, 0},
			{"Lock that was not answered before", []error{errDown, notAsked}, lk.Lock, 1},
			{"Lock that was not answered later", []error{notAsked, errDown, notAsked}, lk.Lock, 1},
		} {
			b.store.set(func(f *faulty) {
				f.acquire = func(context.Context, driver.Claim, func() (driver.Grant, error)) (driver.Grant, error) {
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
			f.release = func(_ context.Context, cs []driver.Claim, next func() []error) []error {
				if failures == 0 {
					return next()
				}
				failures--
				if applied {
					next() // and the answer is lost
				}
				return all(cs, errDown)
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
		fail := func(context.Context, driver.Claim, func() (driver.Grant, error)) (driver.Grant, error) {
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
			f.acquire = func(context.Context, driver.Claim, func() (driver.Grant, error)) (driver.Grant, error) {
				return driver.Grant{}, driver.ErrInvalid
			}
			f.release = func(context.Context, []driver.Claim, func() []error) []error { return []error{driver.ErrInvalid} }
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

func TestDeadHolderIsFollowedAtItsTTL(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, dead := b.open(nil), b.open(nil)
		l := b.lock(dead, "k", NoRenew(), TTL(10*time.Second)) // nobody renews or unlocks
		start := time.Now()
		next := b.lock(lk, "k")
		if got := time.Since(start); got < 10*time.Second || got > 10*time.Second+10*time.Millisecond {
			b.Errorf("followed after %v, want 10s", got)
		}
		if next.Fence() <= l.fence {
			b.Errorf("token %d after %d", next.Fence(), l.fence)
		}
		b.unlock(next)
	})
}

// A store without push is polled with growing pauses, bounded by Poll and by
// the holder's remaining time.
func TestPollingWhereNothingPushes(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := New(mute{b.store}, &Options{Poll: 200 * time.Millisecond})
		defer lk.Close()
		other := b.open(nil)
		l := b.lock(other, "k")
		b.store.seen()
		got := make(chan *Lock)
		go func() { got <- b.lock(lk, "k") }()
		time.Sleep(10 * time.Second)
		if c := b.store.seen(); c.acquire < 50 || c.acquire > 80 {
			b.Errorf("asked %d times in 10s, want once in 100 to 200ms", c.acquire)
		}
		b.unlock(l)
		start := time.Now()
		b.unlock(<-got)
		if d := time.Since(start); d > 200*time.Millisecond {
			b.Errorf("slept %v past a release", d)
		}
	})
}

// Where a lock goes from hand to hand in a line of pollers, each asks sooner as its turn
// comes nearer: it asks a few times for a lock, however often it has waited before.
func TestPollersInLine(t *testing.T) {
	for _, test := range []struct {
		pollers int
		hold    time.Duration
		asks    float64       // for each lock at most
		unused  time.Duration // for each lock at most, with nobody at work
	}{
		{4, time.Millisecond, 6, 10 * time.Millisecond},
		{4, 10 * time.Millisecond, 9, 25 * time.Millisecond},
		{4, 100 * time.Millisecond, 14, 150 * time.Millisecond},
		{32, time.Millisecond, 10, 15 * time.Millisecond},
		{32, 10 * time.Millisecond, 24, 25 * time.Millisecond},
	} {
		simulate(t, func(b *bench) {
			const each = 20
			start := time.Now()
			var all sync.WaitGroup
			for range test.pollers {
				lk := New(mute{b.store}, nil)
				defer lk.Close()
				all.Go(func() {
					for range each {
						l := b.lock(lk, "k")
						time.Sleep(test.hold)
						b.unlock(l)
					}
				})
			}
			all.Wait()
			locks := test.pollers * each
			asks := float64(b.store.seen().acquire) / float64(locks)
			unused := time.Since(start)/time.Duration(locks) - test.hold
			b.Logf("%d pollers, held for %v: asked %.1f times a lock, unused for %v", test.pollers, test.hold, asks, unused)
			if asks > test.asks || unused > test.unused {
				b.Errorf("want %v and %v at most", test.asks, test.unused)
			}
		})
	}
}

// Many who come at the same moment, each for one lock, come apart soon: where the
// store asks for a pause each of them asks a few times before it has its turn.
func TestPollersComeApart(t *testing.T) {
	const pollers, pause = 32, 50 * time.Millisecond
	for _, test := range []struct {
		hold time.Duration
		most float64
	}{
		{0, 2.4},
		{time.Millisecond, 3.2},
		{10 * time.Millisecond, 4.8},
	} {
		simulate(t, func(b *bench) {
			start := time.Now()
			var all sync.WaitGroup
			for range pollers {
				lk := New(crowd{mute{b.store}, pause}, nil)
				defer lk.Close()
				all.Go(func() {
					l := b.lock(lk, "k")
					time.Sleep(test.hold)
					b.unlock(l)
				})
			}
			all.Wait()
			per := float64(b.store.seen().acquire) / pollers
			b.Logf("held for %v: asked %.1f times a lock, in %v", test.hold, per, since(start))
			if per > test.most {
				b.Errorf("held for %v: asked %.1f times a lock, want %v at most", test.hold, per, test.most)
			}
		})
	}
}

// A crowd is a store in which nobody stands in line.
type crowd struct {
	mute
	pause time.Duration
}

func (s crowd) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c.Wait = false
	time.Sleep(100 * time.Microsecond) // there, and back again
	g, err := s.mute.Acquire(ctx, c)
	g.Pause = s.pause
	time.Sleep(100 * time.Microsecond)
	return g, err
}

// mute is a store with the bare contract only.
type mute struct{ s *faulty }

func (m mute) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return m.s.Acquire(ctx, c)
}
func (m mute) Renew(ctx context.Context, cs []driver.Claim) []error   { return m.s.Renew(ctx, cs) }
func (m mute) Release(ctx context.Context, cs []driver.Claim) []error { return m.s.Release(ctx, cs) }
func (m mute) Close() error                                           { return nil }

func TestBareStoreCannotShow(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := New(mute{b.store}, nil)
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
