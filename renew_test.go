package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func TestRenewalKeepsTheLockForHours(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k")
		for range 24 {
			time.Sleep(time.Hour)
			if _, err := other.TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
				b.Fatalf("another got the key: %v", err)
			}
		}
		if err := l.Err(); err != nil {
			b.Errorf("lost: %v", err)
		}
		if c := b.store.seen(); c.renew > 24*3600/4 {
			b.Errorf("%d renewals in a day, want one every 5s", c.renew)
		}
		b.unlock(l)
	})
}

// A store that hangs, fails or answers late: the loss is told before the store
// can let anyone else in.
func TestLossIsToldBeforeTheLeaseEnds(t *testing.T) {
	down := errors.New("connection refused")
	failures := map[string]func(context.Context, []driver.Renewal, func() []error) []error{
		"hangs": hangs[driver.Renewal],
		"hangs past its limit": func(_ context.Context, rs []driver.Renewal, _ func() []error) []error {
			time.Sleep(time.Hour)
			return nil
		},
		"fails":                 func(_ context.Context, rs []driver.Renewal, _ func() []error) []error { return all(rs, down) },
		"gives too few answers": func(context.Context, []driver.Renewal, func() []error) []error { return []error{nil, nil} },
		"answers too late": func(_ context.Context, _ []driver.Renewal, next func() []error) []error {
			time.Sleep(20 * time.Second)
			return next()
		},
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				events := make(chan string, 10)
				lk, other := b.open(&Options{Trace: &Trace{
					AtRisk: func(Event) { events <- "at risk" },
					Lost:   func(Event) { events <- "lost" },
				}}), b.open(nil)
				l := b.lock(lk, "k")
				ctx := l.Context(b.Context())
				b.store.set(func(f *faulty) { f.renew = failure })
				next := b.lock(other, "k") // as soon as the store allows it
				if !ended(l) || l.Fence() != 0 || !errors.Is(context.Cause(ctx), ErrLost) {
					b.Errorf("another holds the key, but the first holder was not told: %v", l.Err())
				}
				synctest.Wait()
				close(events)
				if first, second := <-events, <-events; first != "at risk" || second != "lost" {
					b.Errorf("events %q, %q; want at risk, then lost", first, second)
				}
				if err := l.Unlock(); !errors.Is(err, ErrLost) {
					b.Errorf("Unlock: %v, want ErrLost", err)
				}
				b.store.set(func(f *faulty) { f.renew = nil })
				if err := next.Err(); err != nil {
					b.Errorf("the next holder: %v", err)
				}
				b.unlock(next)
			})
		})
	}
}

// A goroutine that only waits for Done learns of a suspend within a second after the
// suspend, although timers know nothing of it.
func TestSuspendClosesDone(t *testing.T) {
	simulate(t, func(b *bench) {
		var slept atomic.Int64
		b.store.slept = func() time.Duration { return time.Duration(slept.Load()) }
		lk := b.open(nil)
		l := b.lock(lk, "k")
		slept.Add(int64(time.Hour))
		start := time.Now()
		<-l.Done()
		if got := time.Since(start); got > time.Second {
			b.Errorf("Done was closed %v after the suspend", got)
		}
	})
}

func TestOneHiccupDoesNotEndRenewal(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k")
		n := 0
		b.store.set(func(f *faulty) {
			f.renew = func(_ context.Context, rs []driver.Renewal, next func() []error) []error {
				if n++; n%2 == 1 {
					return all(rs, errors.New("reset by peer"))
				}
				return next()
			}
		})
		time.Sleep(time.Hour)
		if err := l.Err(); err != nil {
			b.Errorf("lost although every second renewal got through: %v", err)
		}
		b.unlock(l)
	})
}

func TestRenewalThatSaysLostEndsTheLockAtOnce(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k")
		b.store.set(func(f *faulty) {
			f.renew = func(_ context.Context, rs []driver.Renewal, _ func() []error) []error { return all(rs, driver.ErrLost) }
		})
		start := time.Now()
		<-l.Done()
		var lost *LostError
		if err := l.Err(); !errors.As(err, &lost) || lost.Reason != LossTaken {
			b.Errorf("Err: %v, want taken", err)
		}
		if got := time.Since(start); got > 6*time.Second {
			b.Errorf("told after %v, want at the first renewal", got)
		}
		b.store.set(func(f *faulty) { f.renew = nil })
		if err := l.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock: %v", err)
		}
	})
}

// A renewal in flight at Unlock reaches the store before the release, and none
// comes after it.
func TestRenewalNeverOutlivesRelease(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k")
		var order []string
		var mu sync.Mutex
		note := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
		inFlight := make(chan struct{}, 1)
		b.store.set(func(f *faulty) {
			f.renew = func(_ context.Context, _ []driver.Renewal, next func() []error) []error {
				inFlight <- struct{}{}
				time.Sleep(500 * time.Millisecond)
				note("renew")
				return next()
			}
			f.release = func(_ context.Context, _ []driver.Release, next func() []error) []error {
				note("release")
				return next()
			}
		})
		<-inFlight
		b.unlock(l)
		time.Sleep(time.Hour)
		if !slices.Equal(order, []string{"renew", "release"}) {
			b.Errorf("the store saw %q, want one renewal and then the release", order)
		}
		b.store.set(func(f *faulty) { f.renew, f.release = nil, nil })
		b.free(lk, "k")
	})
}

func TestUnlockOutlivesARenewalThatHangs(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k")
		inFlight := make(chan struct{}, 1)
		b.store.set(func(f *faulty) {
			f.renew = func(context.Context, []driver.Renewal, func() []error) []error {
				inFlight <- struct{}{}
				time.Sleep(time.Minute) // ignores its context
				return nil
			}
		})
		<-inFlight
		start := time.Now()
		b.unlock(l)
		if got := time.Since(start); got > 2*time.Second {
			b.Errorf("Unlock took %v", got)
		}
		b.store.set(func(f *faulty) { f.renew = nil })
		b.free(lk, "k")
	})
}

func TestRenewalsAreBatched(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		const n = 1800
		var locks []*Lock
		for i := range n {
			locks = append(locks, b.lock(lk, fmt.Sprint(i)))
		}
		b.store.seen()
		time.Sleep(time.Minute)
		c := b.store.seen()
		if c.largest > 500 || c.claims < n*10 {
			b.Errorf("%d claims renewed, at most %d a call; want at least %d, at most 500 a call", c.claims, c.largest, n*10)
		}
		if c.renew > c.claims/100 {
			b.Errorf("%d calls for %d claims", c.renew, c.claims)
		}
		for _, l := range locks {
			if err := l.Err(); err != nil {
				b.Fatal(err)
			}
			b.unlock(l)
		}
	})
}

// A batch of long leases whose renewal hangs does not hold up a short lease.
func TestHangingRoundDelaysNobody(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		long := b.lock(lk, "long", TTL(time.Minute))
		short := b.lock(lk, "short", TTL(500*time.Millisecond))
		b.store.set(func(f *faulty) {
			f.renew = func(ctx context.Context, rs []driver.Renewal, next func() []error) []error {
				if slices.ContainsFunc(rs, func(r driver.Renewal) bool { return r.TTL == time.Minute }) {
					return all(rs, hang(ctx))
				}
				return next()
			}
		})
		<-long.Done()
		if err := short.Err(); err != nil {
			b.Errorf("the short lease was lost while another's renewal hung: %v", err)
		}
		b.unlock(short)
	})
}

// After a suspend the monotonic clock, and with it every timer, is behind. The
// first instruction after it must know better.
func TestSuspendEndsOverdueLeasesAtOnce(t *testing.T) {
	simulate(t, func(b *bench) {
		var slept atomic.Int64
		b.store.slept = func() time.Duration { return time.Duration(slept.Load()) }
		lk := b.open(nil)
		l := b.lock(lk, "k")
		ctx := l.Context(b.Context())

		slept.Add(int64(5 * time.Second))
		if err := l.Err(); err != nil || l.Fence() == 0 {
			b.Errorf("lost after a suspend of 5s with a TTL of 15s: %v", err)
		}
		if d, ok := l.Deadline(); !ok || time.Until(d) > 10*time.Second {
			b.Errorf("deadline in %v after a suspend of 5s, want less than 10s", time.Until(d))
		}
		slept.Add(int64(time.Hour))
		if f := l.Fence(); f != 0 {
			b.Errorf("first instruction after an hour's suspend still reads token %d", f)
		}
		if !ended(l) || ctx.Err() == nil || !errors.Is(l.Err(), ErrLost) {
			b.Errorf("after an hour's suspend: ended %v, context %v, Err %v", ended(l), ctx.Err(), l.Err())
		}
		if err := l.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock: %v, want ErrLost", err)
		}
		again := b.lock(lk, "k")
		synctest.Wait() // no renewal is in flight that the store could confirm after it
		slept.Add(int64(time.Hour))
		if err := again.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock as the first instruction after a suspend: %v, want ErrLost", err)
		}
		last := b.lock(lk, "k")
		synctest.Wait()
		slept.Add(int64(time.Hour))
		if err := lk.Close(); err != nil {
			b.Errorf("Close: %v", err)
		}
		if err := last.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock after Close as the first instruction after a suspend: %v, want ErrLost", err)
		}
	})
}

// The same for a lock that comes from hand to hand: the machine is suspended
// between the hand that gives and the hand that takes.
func TestHandOverNeverReturnsALostLock(t *testing.T) {
	simulate(t, func(b *bench) {
		var told counts
		var looks, asleepFrom atomic.Int64
		b.store.slept = func() time.Duration {
			if from := asleepFrom.Load(); from > 0 && looks.Add(1) > from {
				return time.Hour
			}
			return 0
		}
		lk := b.open(&Options{Trace: told.trace()})
		first := b.lock(lk, "k")
		got := make(chan *Lock)
		for range 3 { // one contends at the next turn; the others are handed the lock
			go func() { got <- b.lock(lk, "k") }()
			synctest.Wait()
		}
		b.unlock(first)
		second := <-got
		before := second.Fence()
		synctest.Wait()     // the renewer has looked at the clock for the second
		asleepFrom.Store(2) // Unlock looks at the clock twice, then the waiter
		b.unlock(second)
		for range 2 {
			l := <-got
			if err := l.Err(); err != nil || l.Fence() <= before {
				b.Errorf("handed over: %v, token %d after %d", err, l.Fence(), before)
			}
			b.unlock(l)
		}
		synctest.Wait()
		if told.held.Load() != 0 || told.waiting.Load() != 0 {
			b.Errorf("the trace tells of %d that hold and %d that wait; want none", told.held.Load(), told.waiting.Load())
		}
	})
}

// A lock that would already be lost is never handed to the caller.
func TestLockNeverReturnsALostLock(t *testing.T) {
	simulate(t, func(b *bench) {
		var slept atomic.Int64
		b.store.slept = func() time.Duration { return time.Duration(slept.Load()) }
		lk := b.open(nil)
		naps := 1
		b.store.set(func(f *faulty) {
			f.acquire = func(_ context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				if naps > 0 {
					naps--
					slept.Add(int64(10 * time.Second)) // more than half of the TTL
				}
				return next()
			}
		})
		for _, wait := range []time.Duration{0, time.Hour} {
			naps = 1
			l, err := lk.Lock(b.Context(), "k", Wait(wait))
			if err != nil {
				b.Fatalf("Wait(%v): %v", wait, err)
			}
			if left, _ := l.hold.Remaining(); left < 7*time.Second {
				b.Errorf("Wait(%v): handed over with %v left of 15s", wait, left)
			}
			b.unlock(l)
		}
		naps = 100
		if l, err := lk.TryLock(b.Context(), "k"); err == nil || errors.Is(err, ErrHeld) {
			b.Errorf("a store that always answers too late: %v, %v", l, err)
		}
	})
}

// A store that learns of a loss by itself is heard at once, also before its own
// grant has arrived.
func TestNoticeOfLossOvertakesGrant(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		n := 0
		b.store.set(func(f *faulty) {
			f.acquire = func(_ context.Context, c driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				g, err := next()
				if n++; n == 1 {
					if err := f.Store.Break(context.Background(), c.Key, driver.PublicID(c.ID)); err != nil {
						b.Errorf("Break: %v", err)
					}
				}
				return g, err
			}
		})
		l := b.lock(lk, "k")
		synctest.Wait()
		if err := l.Err(); err != nil || n < 2 {
			b.Errorf("after %d asks: %v; want a second claim that holds", n, err)
		}
		b.unlock(l)
	})
}
