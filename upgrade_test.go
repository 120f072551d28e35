package holdfast

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

func (b *bench) upgrade(l *Lock) *Lock {
	b.Helper()
	up, err := l.Upgrade(b.Context())
	if err != nil {
		b.Fatalf("Upgrade(%q): %v", l.Key(), err)
	}
	return up
}

// upgrading is a call of Upgrade that waits.
func (b *bench) upgrading(ctx context.Context, l *Lock) (got chan *Lock, failed chan error) {
	got, failed = make(chan *Lock, 1), make(chan error, 1)
	go func() {
		up, err := l.Upgrade(ctx)
		if err != nil {
			failed <- err
			return
		}
		got <- up
	}()
	synctest.Wait()
	if len(got)+len(failed) > 0 {
		b.Fatal("the upgrade does not wait")
	}
	return got, failed
}

// exclusive fails the test unless lk gets neither a read lock nor an exclusive lock.
func (b *bench) exclusive(lk *Locker, key string) {
	b.Helper()
	for _, opts := range [][]LockOption{{Shared()}, nil, {Slots(9)}} {
		if l, err := lk.TryLock(b.Context(), key, opts...); !errors.Is(err, ErrHeld) {
			b.Errorf("%q with %d options: %v, want ErrHeld", key, len(opts), err)
			if err == nil {
				b.unlock(l)
			}
		}
	}
}

func TestUpgrade(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k", Shared(), Note("report"))
		read := l.Fence()
		up := b.upgrade(l)
		if l.Err() != nil || up.Err() != nil || up.Key() != "k" || up.ID() == l.ID() {
			b.Errorf("after Upgrade: %v, %v", l.Err(), up.Err())
		}
		if up.Fence() <= read || l.Fence() != up.Fence() {
			b.Errorf("the token is %d, and %d of the upgrade, after %d", l.Fence(), up.Fence(), read)
		}
		for _, lk := range []*Locker{lk, other} {
			b.exclusive(lk, "k")
		}
		holders, err := other.Holders(b.Context(), "k")
		if err != nil || len(holders) != 2 || holders[0].Note != "report" || holders[1].Note != "report" {
			b.Errorf("the holders are %+v, %v", holders, err)
		}
		time.Sleep(time.Minute) // both are renewed
		if l.Err() != nil || up.Err() != nil {
			b.Errorf("a minute after Upgrade: %v, %v", l.Err(), up.Err())
		}

		b.unlock(up)
		if !errors.Is(up.Err(), ErrReleased) || l.Err() != nil {
			b.Errorf("after the downgrade: %v, %v", up.Err(), l.Err())
		}
		if _, err := other.TryLock(b.Context(), "k"); !errors.Is(err, ErrHeld) {
			b.Errorf("a writer beside the read lock: %v", err)
		}
		joins := b.lock(other, "k", Shared())
		if joins.Fence() <= l.Fence() {
			b.Errorf("a reader after the upgrade has token %d after %d", joins.Fence(), l.Fence())
		}
		b.unlock(joins)
		b.unlock(b.upgrade(l)) // once more
		b.unlock(l)
		b.free(other, "k")
	})
}

func TestUpgradeWaitsForTheOtherReaders(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l, near, far := b.lock(lk, "k", Shared()), b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
		if _, err := l.TryUpgrade(b.Context()); !errors.Is(err, ErrHeld) || errors.Is(err, ErrDeadlock) {
			b.Errorf("TryUpgrade beside readers: %v", err)
		}
		got, failed := b.upgrading(b.Context(), l)
		for _, lk := range []*Locker{lk, other} {
			b.exclusive(lk, "k") // later claims queue behind the upgrade
		}
		b.unlock(near)
		time.Sleep(time.Minute) // places in the queue last for three seconds
		b.unlock(far)
		synctest.Wait()
		select {
		case up := <-got:
			b.unlock(up)
		case err := <-failed:
			b.Error(err)
		default:
			b.Error("the upgrade still waits, beside no other reader")
		}
		b.unlock(l)
		b.free(other, "k")
	})
}

func TestUpgradeIsNotOvertaken(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l, far := b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
		got, _ := b.upgrading(b.Context(), l)
		var downgraded atomic.Bool
		var readers sync.WaitGroup
		for _, lk := range []*Locker{lk, other} {
			readers.Go(func() {
				later := b.lock(lk, "k", Shared())
				if !downgraded.Load() {
					b.Error("a later reader overtakes the upgrade")
				}
				b.unlock(later)
			})
		}
		time.Sleep(10 * time.Second)
		b.unlock(far)
		up := <-got
		time.Sleep(time.Second)
		downgraded.Store(true)
		b.unlock(up)
		readers.Wait()
		b.unlock(l)
	})
}

// The second of two upgrades would wait for the first, which waits for the read lock of the
// second.
func TestTwoUpgrades(t *testing.T) {
	simulate(t, func(b *bench) {
		one, two := b.open(nil), b.open(&Options{Owner: "two"})
		for _, lk := range []*Locker{one, two} { // of another process, or of the same
			l, second := b.lock(two, "k", Shared()), b.lock(lk, "k", Shared())
			got, _ := b.upgrading(b.Context(), l)
			for _, upgrade := range []func(context.Context) (*Lock, error){second.Upgrade, second.TryUpgrade} {
				if _, err := upgrade(b.Context()); !errors.Is(err, ErrDeadlock) || errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), `"two" waits for this read lock`) {
					b.Errorf("the second upgrade: %v, want ErrDeadlock", err)
				}
			}
			if second.Err() != nil {
				b.Errorf("the read lock of the refused upgrade: %v", second.Err())
			}
			b.unlock(second)
			b.unlock(<-got)
			if up := b.upgrade(l); !errors.Is(errOf(l.Upgrade(b.Context())), ErrDeadlock) {
				b.Error("a lock is upgraded twice")
			} else {
				b.unlock(up)
			}
			b.unlock(l)
		}
	})
}

func errOf(_ *Lock, err error) error { return err }

func TestUpgradeBehindAWriter(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		for _, lk2 := range []*Locker{lk, other} {
			l := b.lock(lk, "k", Shared())
			got := make(chan *Lock, 1)
			go func() { got <- b.lock(lk2, "k") }()
			synctest.Wait()
			for _, upgrade := range []func(context.Context) (*Lock, error){l.Upgrade, l.TryUpgrade} {
				if _, err := upgrade(b.Context()); !errors.Is(err, ErrDeadlock) {
					b.Errorf("an upgrade behind a writer: %v, want ErrDeadlock", err)
				}
			}
			b.unlock(l)
			b.unlock(<-got)
		}
	})
}

// A waiter that is silent for three seconds loses its place in the queue. The upgrade must not
// wait then behind a writer that has come since.
func TestUpgradeThatLostItsPlace(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l, far := b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
		_, failed := b.upgrading(b.Context(), l)
		b.store.set(func(f *faulty) {
			f.acquire = func(ctx context.Context, a driver.Ask, next func() (driver.Grant, error)) (driver.Grant, error) {
				if a.Weight == driver.MaxWeight-1 {
					return driver.Grant{}, hang(ctx)
				}
				return next()
			}
		})
		got := make(chan *Lock, 1)
		go func() { got <- b.lock(other, "k") }()
		time.Sleep(4 * time.Second)
		b.store.set(func(f *faulty) { f.acquire = nil })
		if err := <-failed; !errors.Is(err, ErrDeadlock) {
			b.Errorf("the upgrade: %v, want ErrDeadlock", err)
		}
		b.unlock(far)
		b.unlock(l)
		b.unlock(<-got)
	})
}

func TestUpgradeGivesUp(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(&Options{Owner: "far"})
		l, far := b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		defer cancel()
		if _, err := l.Upgrade(ctx); !errors.Is(err, ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `held by "far"`) {
			b.Errorf("at the end of the context: %v", err)
		}
		synctest.Wait()
		b.unlock(b.lock(other, "k", Shared())) // nothing is left in the queue
		_, failed := b.upgrading(b.Context(), l)
		b.unlock(l)
		if err := <-failed; !errors.Is(err, ErrReleased) || errors.Is(err, context.Canceled) {
			b.Errorf("when the read lock ends: %v, want ErrReleased", err)
		}
		if _, err := l.Upgrade(b.Context()); !errors.Is(err, ErrReleased) {
			b.Errorf("after Unlock: %v, want ErrReleased", err)
		}
		b.unlock(far)
		synctest.Wait() // The claim of the upgrade is released in the background.
		b.free(other, "k")
	})
}

// The claim of an upgrade that gave up stays in the queue until the cleaner has released the claim.
// The next upgrade must not take such a claim for a deadlock.
func TestUpgradeBehindAClaimThatGaveUp(t *testing.T) {
	for name, failing := range map[string]func(ctx context.Context) error{
		"release hangs": hang,
		"release fails": func(context.Context) error { return errors.New("broken") },
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(b *bench) {
				lk, other := b.open(nil), b.open(nil)
				l, far := b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
				b.store.set(func(f *faulty) {
					f.release = func(ctx context.Context, rs []driver.Release, next func() []error) []error {
						return all(rs, failing(ctx))
					}
				})
				ctx, cancel := context.WithTimeout(b.Context(), time.Second)
				defer cancel()
				if _, err := l.Upgrade(ctx); !errors.Is(err, ErrHeld) {
					b.Errorf("at the end of the context: %v", err)
				}
				synctest.Wait()
				got, _ := b.upgrading(b.Context(), l)
				b.store.set(func(f *faulty) { f.release = nil })
				b.unlock(far)
				b.unlock(<-got)
				b.unlock(l)
				synctest.Wait()
				b.free(other, "k")
			})
		})
	}
}

// Unlock of a lost reader also gives back what its upgrade has at the store.
func TestUnlockOfALostReader(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		l := b.lock(lk, "k", Shared(), MaxHold(time.Second))
		up := b.upgrade(l)
		time.Sleep(2 * time.Second)
		if err := l.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock of a lost reader: %v", err)
		}
		synctest.Wait()
		b.free(other, "k")
		if err := up.Unlock(); !errors.Is(err, ErrLost) {
			b.Errorf("Unlock of its upgrade: %v", err)
		}
	})
}

func TestUpgradeAndReenter(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		l := b.lock(lk, "k", Shared())
		reads := l.Context(b.Context())
		if _, err := lk.Lock(reads, "k", Reenter()); !errors.Is(err, ErrDeadlock) {
			b.Errorf("a read lock entered as an exclusive lock: %v", err)
		}
		inner := b.lockCtx(reads, lk, "k", Shared(), Reenter())
		up := b.upgrade(inner)
		b.unlock(inner) // The outer handle still holds.
		writes := up.Context(reads)
		b.unlock(b.lockCtx(writes, lk, "k", Reenter()))
		b.unlock(b.lockCtx(writes, lk, "k", Shared(), Reenter()))
		if up.Err() != nil {
			b.Error(up.Err())
		}
		b.unlock(up)
		writes = context.WithoutCancel(writes)
		b.unlock(b.lockCtx(writes, lk, "k", Shared(), Reenter())) // the read lock
		if _, err := lk.Lock(writes, "k", Reenter()); !errors.Is(err, ErrDeadlock) {
			b.Errorf("after the downgrade: %v, want ErrDeadlock", err)
		}
		b.unlock(l)
	})
}

func TestUpgradeInvalid(t *testing.T) {
	simulate(t, func(b *bench) {
		lk := b.open(nil)
		for _, opts := range [][]LockOption{nil, {Slots(3)}} {
			l := b.lock(lk, "k", opts...)
			if _, err := l.Upgrade(b.Context()); !errors.Is(err, ErrInvalid) {
				b.Errorf("%v, want ErrInvalid", err)
			}
			b.unlock(l)
		}
		l := b.lock(lk, "k", Shared())
		up := b.upgrade(l)
		if _, err := up.TryUpgrade(b.Context()); !errors.Is(err, ErrInvalid) {
			b.Errorf("an upgrade of an upgrade: %v, want ErrInvalid", err)
		}
		b.unlock(up)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		if _, err := l.Upgrade(ctx); !errors.Is(err, context.Canceled) {
			b.Errorf("with an ended context: %v", err)
		}
		b.unlock(l)
	})
}

// A store that cannot say who waits is asked once.
func TestUpgradeWithoutAQueue(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, err := New(struct{ driver.Store }{b.store}, nil)
		if err != nil {
			b.Fatal(err)
		}
		defer lk.Close()
		other := b.open(nil)
		l, far := b.lock(lk, "k", Shared()), b.lock(other, "k", Shared())
		if _, err := l.Upgrade(b.Context()); !errors.Is(err, ErrHeld) || errors.Is(err, ErrDeadlock) {
			b.Errorf("beside a reader: %v, want ErrHeld", err)
		}
		synctest.Wait()
		b.unlock(far)
		b.unlock(b.upgrade(l))
		b.unlock(l)
	})
}

func TestUpgradeOfAGroup(t *testing.T) {
	simulate(t, func(b *bench) {
		lk, other := b.open(nil), b.open(nil)
		g, err := lk.LockAll(b.Context(), []string{"a", "b"}, Shared())
		if err != nil {
			b.Fatal(err)
		}
		up := b.upgrade(g.Lock("b"))
		b.exclusive(other, "b")
		b.unlock(b.lock(other, "a", Shared()))
		if err := g.Unlock(); err != nil {
			b.Error(err)
		}
		if !errors.Is(up.Err(), ErrReleased) {
			b.Errorf("after Unlock of the group: %v", up.Err())
		}
		b.free(other, "b")
	})
}
