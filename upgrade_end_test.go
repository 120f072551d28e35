package holdfast

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// The two claims exclude others only together: the upgrade ends with its reader, before
// anybody else can hold the key.
func TestUpgradeEndsWithItsReader(t *testing.T) {
	for name, end := range map[string]func(b *bench, l *Lock){
		"unlock":    func(b *bench, l *Lock) { b.unlock(l) },
		"broken":    func(b *bench, l *Lock) { _ = l.locker.Break(b.Context(), "k", l.ID()) },
		"max hold":  func(_ *bench, l *Lock) { time.Sleep(20 * time.Second) },
		"no answer": func(b *bench, l *Lock) { b.expires(l) },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				lk, other := b.open(nil), b.open(nil)
				l := b.lock(lk, "k", Shared(), MaxHold(20*time.Second))
				up := b.upgrade(l)
				work := up.Context(b.Context())
				end(b, l)
				if up.Err() == nil || l.Err() == nil || up.Fence() != 0 || up.Progress() == nil {
					b.Errorf("the lock: %v; its upgrade: %v", l.Err(), up.Err())
				}
				if !ended(l) || !ended(up) || work.Err() == nil {
					b.Error("Done of the upgrade, or its context, is open")
				}
				if name != "unlock" && (!errors.Is(up.Err(), ErrLost) || !errors.Is(up.Unlock(), ErrLost) || !errors.Is(l.Unlock(), ErrLost)) {
					b.Errorf("lost: %v", up.Err())
				}
				if name == "unlock" && !errors.Is(up.Unlock(), ErrReleased) {
					b.Errorf("released: %v", up.Err())
				}
				b.store.set(func(f *faulty) { f.renew = nil })
				b.unlock(b.lock(other, "k"))
			})
		})
	}
}

// expires keeps the renewals of one lock from the store until its deadline.
func (b *bench) expires(l *Lock) {
	b.store.set(func(f *faulty) {
		f.renew = func(ctx context.Context, rs []driver.Renewal, next func() []error) []error {
			for _, r := range rs {
				if r.ID == l.hold.ID() {
					return all(rs, hang(ctx))
				}
			}
			return next()
		}
	})
	deadline, _ := l.Deadline()
	time.Sleep(time.Until(deadline))
}

// Err of an upgrade reads the clock, for its reader as well. Nobody is told yet.
func TestUpgradeAfterAPause(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k", Shared(), NoRenew())
		time.Sleep(5 * time.Second)
		up := b.upgrade(l)
		first, _ := l.Deadline()
		if second, _ := up.Deadline(); !second.Equal(first) {
			b.Errorf("the upgrade ends at %v, its reader at %v", second, first)
		}
		time.Sleep(time.Until(first))
		if err := up.Err(); !errors.Is(err, ErrLost) {
			b.Errorf("when its reader ends: %v", err)
		}
	})
}

func TestUpgradeLostAlone(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k", Shared())
		up := b.upgrade(l)
		if err := other.Break(b.Context(), "k", up.ID()); err != nil {
			b.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if !errors.Is(up.Err(), ErrLost) || l.Err() != nil {
			b.Errorf("the broken upgrade: %v; its reader: %v", up.Err(), l.Err())
		}
		b.unlock(b.upgrade(l))
		b.unlock(l)
	})
}

// The reader ends while the grant of the upgrade is on its way: another reader may be let in
// beside the upgrade.
func TestUpgradeIsGrantedTooLate(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k", Shared())
		b.store.set(func(f *faulty) {
			f.acquire = func(_ context.Context, a driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				g, err := next()
				if a.Weight == driver.MaxWeight-1 {
					time.Sleep(time.Second)
				}
				return g, err
			}
		})
		_, failed := b.upgrading(b.Context(), l)
		b.unlock(l)
		if err := <-failed; !errors.Is(err, ErrReleased) {
			b.Errorf("%v, want ErrReleased", err)
		}
		b.unlock(b.lock(other, "k"))
	})
}

// Grants that come too late are no refusal, so there is no holder to name.
func TestUpgradeIsGrantedTooLateAtFirst(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, err := New(struct{ driver.Store }{b.store}, nil) // a store that cannot say who waits
		if err != nil {
			b.Fatal(err)
		}
		defer lk.Close()
		l := b.lock(lk, "k", Shared())
		late := 0
		b.store.set(func(f *faulty) {
			f.acquire = func(_ context.Context, _ driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				g, err := next()
				if late++; late <= 3 {
					time.Sleep(10 * time.Second)
				}
				return g, err
			}
		})
		b.unlock(b.upgrade(l))
		if late != 4 {
			b.Errorf("the upgrade was requested %d times, want 4", late)
		}
		b.unlock(l)
	})
}

// Progress of the upgrade is progress of its reader.
func TestUpgradeReportsProgress(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k", Shared(), Progress(2*time.Second))
		up := b.upgrade(l)
		for range 5 {
			time.Sleep(time.Second)
			if err := up.Progress(); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		if !errors.Is(up.Err(), ErrLost) {
			b.Errorf("without progress: %v", up.Err())
		}
	})
}

// A dropped lock is noticed though it was upgraded; the two refer to each other.
func TestDroppedUpgrade(t *testing.T) {
	simulate(t, func(b *bench) {
		lost := make(chan Event, 10)
		lk, other := b.open(&Options{Trace: &Trace{Lost: func(e Event) { lost <- e }}}), b.open(nil)
		b.upgrade(b.lock(lk, "k", Shared()))
		time.Sleep(6 * time.Second) // past the first renewal
		synctest.Wait()
		runtime.GC()
		runtime.GC()
		b.unlock(b.lock(other, "k"))
		if len(lost) != 2 {
			b.Errorf("%d locks were reported, want both", len(lost))
		}
	})
}

func TestUpgradeAndClose(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l, waits, far := b.lock(lk, "k", Shared()), b.lock(lk, "k2", Shared()), b.lock(other, "k2", Shared())
		up := b.upgrade(l)
		_, failed := b.upgrading(b.Context(), waits)
		if err := lk.Close(); err != nil {
			b.Error(err)
		}
		if err := <-failed; !errors.Is(err, ErrClosed) || !errors.Is(up.Err(), ErrClosed) {
			b.Errorf("after Close: %v, %v", err, up.Err())
		}
		b.unlock(far)
		b.free(other, "k")
		b.free(other, "k2")
	})
}

// A caller that leaves does not cut short the look at the queue. That may cost a connection to the
// store.
func TestUpgradeLooksWithoutItsCaller(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l, far := b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
		for _, upgrade := range []func(context.Context) (*Lock, error){l.Upgrade, l.TryUpgrade} {
			ctx, leave := context.WithCancel(b.Context())
			looked := make(chan error, 1)
			b.store.set(func(f *faulty) {
				f.holders = func(ctx context.Context) error {
					leave()
					time.Sleep(500 * time.Millisecond)
					looked <- ctx.Err()
					return nil
				}
			})
			began := time.Now()
			_, err := upgrade(ctx)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrHeld) || time.Since(began) > 0 {
				b.Errorf("the call has returned after %v: %v", since(began), err)
			}
			if err := <-looked; err != nil {
				b.Errorf("the look was cut short: %v", err)
			}
		}
		b.unlock(l)
		b.unlock(far)
	})
}

// An upgrade tolerates looks that fail, for as long as a store may fail that has never answered.
func TestUpgradeThatCannotLook(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l, far := b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
		b.store.set(func(f *faulty) { f.holders = func(context.Context) error { return errors.New("reset") } })
		began := time.Now()
		if _, err := l.Upgrade(b.Context()); err == nil || errors.Is(err, ErrHeld) || time.Since(began) < 3*time.Second {
			b.Errorf("the upgrade has ended after %v: %v", since(began), err)
		}
		got, failed := b.upgrading(b.Context(), l)
		b.store.set(func(f *faulty) { f.holders = nil })
		b.unlock(far)
		select {
		case up := <-got:
			b.unlock(up)
		case err := <-failed:
			b.Error(err)
		}
		b.unlock(l)
	})
}
