package holdfast

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// These tests are about parked claims that nobody takes over: they are released, broken or too old.

func TestCloseGivesParkedClaimsBack(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		b.unlock(r.held)
		if err := r.one.Close(); err != nil {
			b.Error(err)
		}
		if !r.has() {
			b.Error("a claim of a closed Locker is still parked")
		}
		r.end()
	})
}

// TestCloseBesideTheReleaseOfAParkedClaim: nobody has dropped a lock.
func TestCloseBesideTheReleaseOfAParkedClaim(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		r.releaseSlowly()
		b.unlock(r.held)
		time.Sleep(engine.MaxPark + time.Millisecond)
		if err := r.one.Close(); err != nil || r.lost > 0 {
			b.Errorf("Close: %v; %d locks lost", err, r.lost)
		}
		r.end()
	})
}

func TestBrokenParkedClaim(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		id, token := r.held.ID(), r.held.Fence()
		b.unlock(r.held)
		if err := r.two.Break(b.Context(), "k", id); err != nil {
			b.Fatal(err)
		}
		if !r.has() {
			b.Fatal("two waits for a broken claim")
		}
		if _, err := r.one.TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Errorf("TryLock: %v", err)
		}
		if l := <-r.next; l.Fence() <= token {
			b.Errorf("token %d after %d", l.Fence(), token)
		} else {
			r.next <- l
		}
		r.end()
	})
}

// TestParkedClaimIsTooOld: the machine was suspended after the Unlock.
func TestParkedClaimIsTooOld(t *testing.T) {
	simulate(t, func(b *bench) {
		var mu sync.Mutex
		var slept time.Duration
		b.store.set(func(f *faulty) {
			f.slept = func() time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return slept
			}
		})
		r := newRush(b)
		b.unlock(r.held)
		mu.Lock()
		slept = time.Hour
		mu.Unlock()
		if l, err := r.one.TryLock(b.Context(), "k"); err == nil {
			b.Errorf("a claim of an hour ago has become a lock with the token %d", l.Fence())
		}
		r.end()
	})
}

func TestParkedClaimWhoseReleaseFails(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		fails := 3
		b.store.set(func(f *faulty) {
			f.release = func(_ context.Context, rs []driver.Release, next func() []error) []error {
				if fails--; fails >= 0 {
					return all(rs, errors.New("no answer"))
				}
				return next()
			}
		})
		b.unlock(r.held)
		time.Sleep(time.Second)
		if !r.has() {
			b.Error("the claim was not released")
		}
		r.end()
	})
}

func TestTryDuringTheRelease(t *testing.T) {
	for name, opts := range map[string][]LockOption{"same terms": nil, "other terms": {Note("another")}} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				r := newRush(b)
				r.releaseSlowly()
				b.unlock(r.held)
				if opts == nil {
					time.Sleep(2 * engine.MaxPark)
				}
				short, cancel := context.WithTimeout(b.Context(), 10*time.Millisecond)
				defer cancel()
				began := time.Now()
				if _, err := r.one.TryLock(short, "k", opts...); !errors.Is(err, context.DeadlineExceeded) || since(began) != 10*time.Millisecond {
					b.Errorf("a try with a context of 10ms: %v after %v", err, since(began))
				}
				_, err := r.one.TryLock(b.Context(), "k", opts...)
				var held *HeldError
				if !errors.As(err, &held) || held.Owner != "two" {
					b.Errorf("got %v, want an error that two holds the key", err)
				}
				r.end()
			})
		})
	}
}

func TestOrderBehindAParkedClaimOfOtherTerms(t *testing.T) {
	simulate(t, func(b *bench) {
		r := newRush(b)
		b.unlock(r.held)
		var order []string
		for _, name := range []string{"first", "second"} {
			r.waits.Go(func() {
				l := b.lock(r.one, "k", Note(name))
				order = append(order, name)
				b.unlock(l)
			})
			time.Sleep(time.Microsecond)
		}
		time.Sleep(time.Millisecond)
		r.end()
		if len(order) != 2 || order[0] != "first" {
			b.Errorf("the order is %v", order)
		}
	})
}
