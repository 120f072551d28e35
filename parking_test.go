package holdfast

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// A rush is two processes that want one key all the time. One holds the key, after a wait at
// the store and right after its last lock, and two waits at the store.
type rush struct {
	*bench
	one, two *Locker
	held     *Lock      // of one
	next     chan *Lock // of two
	waits    sync.WaitGroup

	mu       sync.Mutex
	unlocked []Event // of one
	lost     int     // locks of one
}

func newRush(b *bench, opts ...LockOption) *rush {
	b.Helper()
	r := &rush{bench: b, two: b.open(&Options{Owner: "two"}), next: make(chan *Lock, 1)}
	r.one = b.open(&Options{Owner: "one", Trace: &Trace{
		Unlocked: func(e Event) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.unlocked = append(r.unlocked, e)
		},
		Lost: func(Event) { r.lost++ },
	}})
	first := b.lock(r.two, "k", opts...)
	r.held = r.swap(first, r.one, opts...) // one has waited
	second := r.swap(r.held, r.two, opts...)
	r.held = r.swap(second, r.one, opts...) // and comes back at once
	r.waits.Go(func() { r.next <- b.lock(r.two, "k", opts...) })
	synctest.Wait()
	r.store.seen()
	return r
}

// swap lets a waiter of lk have the key after l.
func (r *rush) swap(l *Lock, lk *Locker, opts ...LockOption) *Lock {
	next := make(chan *Lock, 1)
	r.waits.Go(func() { next <- r.lock(lk, "k", opts...) })
	synctest.Wait()
	r.unlock(l)
	return <-next
}

// end lets two have its turn.
func (r *rush) end() {
	r.unlock(<-r.next)
	r.waits.Wait()
}

// loseRival lets two have its turn, the last one. Then one has the key again, and releases it.
func (r *rush) loseRival() {
	r.unlock(r.held)
	time.Sleep(engine.MaxPark)
	r.held = r.swap(<-r.next, r.one)
	r.unlock(r.held)
	time.Sleep(engine.MaxPark)
	synctest.Wait()
	r.store.seen()
}

// releaseSlowly makes the store take a second for a release.
func (r *rush) releaseSlowly() {
	r.store.set(func(f *faulty) {
		f.release = func(_ context.Context, _ []driver.Release, next func() []error) []error {
			time.Sleep(time.Second)
			return next()
		}
	})
}

// passing lets the store say, as a store without a queue does, that its claims may have passed others.
func (r *rush) passing() {
	r.store.set(func(f *faulty) {
		f.acquire = func(_ context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
			g, err := next()
			g.Passed = g.OK
			return g, err
		}
	})
}

// thrice locks and unlocks at once, three times, and returns what the store was asked meanwhile.
func (r *rush) thrice() calls {
	for range 3 {
		r.unlock(r.lock(r.one, "k"))
	}
	return r.store.seen()
}

// has reports whether two has the key.
func (r *rush) has() bool {
	synctest.Wait()
	return len(r.next) == 1
}

func TestUnlockParksTheClaim(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		l := r.held
		for range 3 {
			ctx := l.Context(b.Context())
			token := l.Fence()
			b.unlock(l)
			if !errors.Is(context.Cause(ctx), ErrReleased) || !errors.Is(l.Err(), ErrReleased) {
				b.Errorf("after Unlock: the context %v, the lock %v", context.Cause(ctx), l.Err())
			}
			time.Sleep(engine.MaxPark / 2)
			next, err := r.one.TryLock(b.Context(), "k")
			if err != nil {
				b.Fatal(err)
			}
			if next.Fence() != token+1 {
				b.Errorf("token %d after %d", next.Fence(), token)
			}
			l = next
		}
		if c := b.store.seen(); c.acquire+c.release > 0 || r.has() {
			b.Errorf("the store was asked: %+v; two has the key: %v", c, r.has())
		}
		b.unlock(l)
		time.Sleep(engine.MaxPark)
		if !r.has() {
			b.Error("the claim is parked for too long")
		}
		r.end()
	})
}

// TestParkedTurnEnds: a process that always comes back gives the key to the next process.
func TestParkedTurnEnds(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		const work = 100 * time.Microsecond
		l, began := r.held, time.Now()
		for {
			time.Sleep(work)
			b.unlock(l)
			if r.has() {
				break
			}
			l = b.lock(r.one, "k")
		}
		if took := time.Since(began); took < engine.MaxParkedTurn || took > engine.MaxParkedTurn+work {
			b.Errorf("the turn has taken %v", took)
		}
		r.end()
	})
}

// TestParkingNeedsSpeed: a process that comes back later parks nothing.
func TestParkingNeedsSpeed(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		b.unlock(r.held)
		time.Sleep(2 * engine.MaxPark)
		l := r.swap(<-r.next, r.one)
		r.waits.Go(func() { r.next <- b.lock(r.two, "k") })
		synctest.Wait()
		b.unlock(l)
		if !r.has() {
			b.Error("the claim is parked although the process came back late")
		}
		r.end()
	})
}

// TestParkingNeedsOthers: the others have gone since the last lock.
func TestParkingNeedsOthers(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		r.loseRival()
		if c := r.thrice(); c.acquire != 3 || c.release != 3 {
			b.Errorf("nobody else waits, and the store was asked %+v", c)
		}
	})
}

// TestParkingPastOthers: a store without a queue would also grant the key if the others still
// waited. They count as waiting for a second.
func TestParkingPastOthers(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		r.passing()
		r.loseRival()
		began := time.Now()
		if c := r.thrice(); c.acquire != 1 || c.release != 0 {
			b.Errorf("others may wait, and the store was asked %+v", c)
		}
		for time.Since(began) < time.Second {
			time.Sleep(engine.MaxPark / 2)
			b.unlock(b.lock(r.one, "k"))
		}
		time.Sleep(engine.MaxPark)
		synctest.Wait()
		if c, turns := b.store.seen(), int(time.Second/engine.MaxParkedTurn); c.acquire > turns {
			b.Errorf("others may wait, and the store was asked %+v, more than once in a turn", c)
		}
		if c := r.thrice(); c.acquire != 3 || c.release != 3 {
			b.Errorf("nobody else has waited for a second, and the store was asked %+v", c)
		}
	})
}

func TestParkingPastOthersNeedsSpeed(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		r.passing()
		r.loseRival()
		time.Sleep(engine.MaxPark)
		if c := r.thrice(); c.acquire != 3 || c.release != 3 {
			b.Errorf("the process came back late, and the store was asked %+v", c)
		}
	})
}

func TestNeverParked(t *testing.T) {
	for name, opts := range map[string][]LockOption{
		"least time": {MinHold(time.Microsecond)},
		"no renewal": {NoRenew()},
		"one slot":   {Slots(1)},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				r := newRush(b, opts...)
				time.Sleep(time.Microsecond)
				b.unlock(r.held)
				if !r.has() {
					b.Error("the claim is parked")
				}
				r.end()
			})
		})
	}
}

// TestParkedClaimOfOtherTerms: the call does not find its own process in the way.
func TestParkedClaimOfOtherTerms(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		b.unlock(r.held)
		_, err := r.one.TryLock(b.Context(), "k", Note("another"))
		var held *HeldError
		if !errors.As(err, &held) || held.Owner != "two" {
			b.Errorf("got %v, want an error that two holds the key", err)
		}
		if c := b.store.seen(); c.release != 1 {
			b.Errorf("the store was asked %+v, want one release", c)
		}
		r.end()
	})
}

// TestHungWatchLeavesTimeToAsk: the key is free, and only the wake-ups hang.
func TestHungWatchLeavesTimeToAsk(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		b.unlock(r.held)
		time.Sleep(engine.MaxPark)
		b.unlock(<-r.next)
		b.store.set(func(f *faulty) { f.watch = hang })
		l, err := r.one.Lock(b.Context(), "k", Wait(200*time.Millisecond))
		if err != nil {
			b.Fatal(err)
		}
		b.unlock(l)
		r.waits.Wait()
	})
}

func TestTraceTellsOfParking(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		r.unlocked = nil
		b.unlock(r.held)
		b.unlock(b.lock(r.one, "k"))
		time.Sleep(engine.MaxPark)
		if len(r.unlocked) != 2 || !r.unlocked[0].Parked || !r.unlocked[1].Parked || r.unlocked[0].Fence == r.unlocked[1].Fence {
			b.Errorf("the Trace says %+v", r.unlocked)
		}
		r.end()
	})
}

// TestContendedCallsSubscribeFirst: a wait for a key that was contended a moment ago asks the
// store once.
func TestContendedCallsSubscribeFirst(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		b.unlock(r.held)
		time.Sleep(engine.MaxPark)
		l := <-r.next
		b.store.seen()
		r.held = r.swap(l, r.one)
		if c := b.store.seen(); c.acquire != 1 {
			b.Errorf("one wait has cost %d requests", c.acquire)
		}
		b.unlock(r.held)
	})
}
