package leases

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unproved"
	"github.com/holdfast-go/holdfast/internal/wallclock"
)

// A ledger knows who holds what, as the holders know it.
type ledger struct {
	*testing.T
	began time.Time
	mu    sync.Mutex
	last  map[string]*entry
}

type entry struct {
	lock  *holdfast.Lock
	fence uint64 // the lock tells 0 when it has ended
	left  bool
}

func newLedger(t *testing.T) *ledger {
	return &ledger{T: t, began: time.Now(), last: make(map[string]*entry)}
}

// enter notes a new holder. The one before has left or knows that it has lost.
func (l *ledger) enter(key string, lock *holdfast.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fence := lock.Fence()
	if fence == 0 {
		return // It has ended since.
	}
	if e := l.last[key]; e != nil {
		if !e.left && e.lock.Err() == nil {
			if wallclock.SetBy(l.began) != 0 {
				unproved.Logf(l, "that %s has one holder: the clock was set, and the server ends leases by the clock", key)
			} else {
				l.Errorf("%s has two holders, with tokens %d and %d", key, e.fence, fence)
			}
		}
		if fence <= e.fence {
			l.Errorf("%s has token %d after %d", key, lock.Fence(), e.lock.Fence())
		}
	}
	l.last[key] = &entry{lock: lock, fence: fence}
}

// leave notes that a holder is about to unlock.
func (l *ledger) leave(key string, lock *holdfast.Lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.last[key]; e != nil && e.lock == lock {
		e.left = true
	}
}

// once locks and unlocks a key. A call that begins while the server is down gives up after
// three seconds, and is made again. An unlock may fail while the server is down.
func (l *ledger) once(ctx context.Context, locks *holdfast.Locker, key string) error {
	lock, err := servers.Patient(ctx, locks.Lock, key)
	for refused := new(net.OpError); errors.As(err, &refused) && ctx.Err() == nil; {
		lock, err = servers.Patient(ctx, locks.Lock, key)
	}
	if err != nil {
		return err
	}
	l.enter(key, lock)
	l.leave(key, lock)
	_ = lock.Unlock()
	return nil
}

// A server is killed and started again while 200 locks are held, some by a
// process that is never heard of again, and 50 are waited for, and others come
// and go.
func TestCrash(t *testing.T) {
	each(t, func(t *testing.T, e *engine) {
		held, dead, waited, churned := 200, 20, 50, 4
		if testing.Short() {
			held, waited = 40, 25
		}
		const ttl, deadTTL = 15 * time.Second, 3 * time.Second
		s := e.start(t, e.nosync)
		at := create(t, s.URL())
		grave := servers.StartProxy(t, s.Addr())
		opts := &holdfast.Options{TTL: ttl}
		a, b := locker(t, at, opts), locker(t, at, opts)
		gone := locker(t, through(at, grave.Addr()), &holdfast.Options{TTL: deadTTL})
		ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
		defer cancel()

		l := newLedger(t)
		var mine []*holdfast.Lock
		key := func(i int) string { return fmt.Sprint("key", i) }
		for i := range held {
			by := a
			if i < dead {
				by = gone
			}
			mine = append(mine, lock(t, by, key(i)))
			l.enter(key(i), mine[i])
		}
		var waiting, churning sync.WaitGroup
		served := make([]atomic.Bool, waited) // as on a machine so slow that the holder has lost its lock
		for i := range waited {
			waiting.Go(func() {
				defer served[i].Store(true)
				if err := l.once(ctx, b, key(i)); err != nil {
					t.Errorf("who waited for %s: %v", key(i), err)
				}
			})
		}
		for i := range waited {
			servers.Until(t, "those who wait to be in the queue", func() bool { return served[i].Load() || line(t, a, key(i)) == 1 })
		}
		stop, turns := make(chan struct{}), make([]int, churned)
		for i := range churned {
			churning.Go(func() {
				for ctx.Err() == nil {
					err := l.once(ctx, []*holdfast.Locker{a, b}[i%2], "churned")
					if err != nil {
						continue
					}
					turns[i]++
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}

		grave.Blackhole(true)
		began := time.Now()
		until := began.Add(ttl) // when the first lock ends if no renewal succeeds
		for _, m := range mine[dead:] {
			if end, _ := m.Deadline(); end.Before(until) {
				until = end
			}
		}
		s.Kill()
		s.Restart()
		back := time.Now()
		down := back.Sub(began)
		t.Logf("the server was down for %v", down)
		other := locker(t, at, opts)
		stands := func() bool { return time.Now().Before(until) }
		for i, m := range mine[dead:] {
			_, err := servers.Patient(ctx, other.TryLock, key(dead+i))
			if lost := m.Err(); lost == nil && !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%s is held: %v; want ErrHeld", key(dead+i), err)
			} else if lost != nil && stands() {
				t.Errorf("%s, which the server knew: %v", key(dead+i), lost)
			}
		}
		for i, m := range mine[dead:] {
			l.leave(key(dead+i), m)
			if err := unlock(m); err != nil && stands() {
				t.Errorf("unlock of %s: %v", key(dead+i), err)
			}
		}
		if !stands() {
			unproved.Logf(t, "that the server has kept all that it knew")
		}
		waiting.Wait()
		t.Logf("those who waited got on %v after the server was back, the TTL being %v", time.Since(back), ttl)
		close(stop)
		churning.Wait()
		for i := range held {
			succeed(t, l.once(ctx, other, key(i)))
		}
		for i, n := range turns {
			if n == 0 {
				t.Errorf("no. %d of those who come and go never had a turn", i)
			}
		}
		grave.Blackhole(false)
	})
}
