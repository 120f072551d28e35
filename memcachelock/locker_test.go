package memcachelock

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

// newStore returns a store that has proved its servers: a busy machine may cut off a canary, and a
// later call then sends another.
func newStore(t testing.TB, opts *Options, all ...*servers.Memcached) *Store {
	t.Helper()
	s := connected(t, opts, all...)
	proved(t, s)
	return s
}

// connected returns a store whose servers may have no room for a canary.
func connected(t testing.TB, opts *Options, all ...*servers.Memcached) *Store {
	t.Helper()
	var addrs []string
	for _, m := range all {
		addrs = append(addrs, m.Addr())
	}
	s := must.Get(New(addrs, opts))
	t.Cleanup(func() { s.Close() })
	reached(t, s)
	return s
}

func reached(t testing.TB, s *Store) {
	t.Helper()
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.reach(ctx) })
}

// proved calls the servers of a store until each is proved.
func proved(t testing.TB, s *Store) {
	t.Helper()
	servers.Until(t, "a proof of each server", func() bool {
		reached(t, s)
		return !slices.ContainsFunc(s.servers, func(s *server) bool { return !s.proved.Load() })
	})
}

// newLocker returns a Locker with a store of its own, as another process has.
func newLocker(t testing.TB, opts *holdfast.Options, all ...*servers.Memcached) *holdfast.Locker {
	t.Helper()
	locks := must.Get(holdfast.New(newStore(t, nil, all...), opts))
	t.Cleanup(func() { locks.Close() })
	return locks
}

func exclusive(key, id string) driver.Ask {
	c := driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
	return driver.Ask{Claim: c, Span: 1}
}

func granted(t testing.TB, s *Store, a driver.Ask) driver.Grant {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := s.Acquire(ctx, a)
	if err != nil || !g.OK {
		t.Fatalf("%s: %+v, %v; want a grant", a.ID, g, err)
	}
	return g
}

func renew(ctx context.Context, s *Store, a driver.Ask) error {
	return errors.Join(s.Renew(ctx, []driver.Renewal{{Claim: a.Claim}})...)
}

func release(ctx context.Context, s *Store, a driver.Ask) error {
	return errors.Join(s.Release(ctx, []driver.Release{{Claim: a.Claim}})...)
}

// taken locks a key for which it may have to wait until the server answers.
func taken(t *testing.T, locks *holdfast.Locker, key string) *holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		lock, err := locks.Lock(ctx, key)
		if err == nil {
			return lock
		}
		if ctx.Err() != nil {
			t.Fatalf("lock %s: %v", key, err)
		}
	}
}

func unlock(lock *holdfast.Lock) error { return unlocking.Release(lock.Unlock) }

// told waits until a holder knows of its loss.
func told(t *testing.T, lock *holdfast.Lock) {
	t.Helper()
	select {
	case <-lock.Done():
	case <-time.After(patience):
		t.Fatal("the holder was never told")
	}
	if err := lock.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("the holder was told %v, want that the lock is lost", err)
	}
}

// TestLossIsTold ends a lock in each way in which a cache may, and lets another
// take it. The holder learns of it at its next renewal, and does nothing to the
// other's lock when it unlocks.
func TestLossIsTold(t *testing.T) {
	t.Parallel()
	item := (&Options{Prefix: DefaultPrefix}).item("key")
	for name, end := range map[string]func(t *testing.T, m *servers.Memcached){
		"flush":     func(t *testing.T, m *servers.Memcached) { m.Must("flush_all", "OK") },
		"restart":   func(t *testing.T, m *servers.Memcached) { m.Restart() },
		"delete":    func(t *testing.T, m *servers.Memcached) { m.Must("md "+item, "HD") },
		"shortened": func(t *testing.T, m *servers.Memcached) { m.Must("touch "+item+" 1", "TOUCHED") },
		"break": func(t *testing.T, m *servers.Memcached) {
			s := newStore(t, nil, m)
			holders, err := s.Holders(t.Context(), "key")
			if err == nil {
				err = s.Break(t.Context(), "key", holders[0].ID)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := servers.StartMemcached(t)
			// The next renewal is to come long after the item has been changed, or has ended.
			a := newLocker(t, &holdfast.Options{TTL: 30 * time.Second, Owner: "a"}, m)
			lost := taken(t, a, "key")
			end(t, m)
			b := newLocker(t, &holdfast.Options{Owner: "b"}, m)
			other := taken(t, b, "key")
			told(t, lost)
			if err := lost.Unlock(); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("unlock of what was lost: %v", err)
			}
			holdsAlone(t, b, other)
			if other.Fence() <= lost.Fence() {
				t.Errorf("token %d after %d", other.Fence(), lost.Fence())
			}
		})
	}
}

// holdsAlone checks that a lock on "key" stands.
func holdsAlone(t *testing.T, locks *holdfast.Locker, lock *holdfast.Lock) {
	t.Helper()
	holders, err := locks.Holders(t.Context(), "key")
	if err != nil || len(holders) != 1 || holders[0].ID != lock.ID() || lock.Err() != nil {
		t.Errorf("the key has the holders %+v (%v), and the lock says %v", holders, err, lock.Err())
	}
}

// TestRestartRepeatsNumbers lets two runs of a server give the same CAS number
// to the locks of two owners. The one who knows its number from the first run
// must not end or prolong the lock of the second.
func TestRestartRepeatsNumbers(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	a, b := newStore(t, nil, m), newStore(t, nil, m)
	mine, theirs := exclusive("key", "mine"), exclusive("key", "theirs")
	before := granted(t, a, mine)
	cas := a.lastWrites.byID["mine"].cas
	m.Restart()
	for range cas - 2 { // all but the numbers of the clock and of the lock
		m.Must("set other 0 60 1\r\nx", "STORED")
	}
	after := granted(t, b, theirs)
	if again := b.lastWrites.byID["theirs"].cas; again != cas {
		t.Fatalf("the second run gave the number %d, the first %d: this test shows nothing", again, cas)
	}
	if after.Fence <= before.Fence {
		t.Errorf("token %d, and before the restart %d", after.Fence, before.Fence)
	}
	if err := release(t.Context(), a, mine); !errors.Is(err, driver.ErrLost) {
		t.Errorf("release of what the restart has ended: %v", err)
	}
	if err := renew(t.Context(), b, theirs); err != nil {
		t.Errorf("renewal of the other's lock: %v", err)
	}
}

// TestSilentServer pauses the server: whoever asks gets an error in time, and
// the holder is told before its TTL is over.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	a, b := newLocker(t, &holdfast.Options{TTL: 3 * time.Second}, m), newLocker(t, nil, m)
	held := taken(t, a, "key")
	m.Pause()
	if lock, err := b.TryLock(t.Context(), "other"); lock != nil || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a silent server gave %v and %v", lock, err)
	}
	told(t, held)
	m.Resume()
	taken(t, b, "key")
}

// TestDeadServer kills the server: it says so at once.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	m := servers.StartMemcached(t)
	locks := newLocker(t, &holdfast.Options{TTL: 3 * time.Second}, m)
	held := taken(t, locks, "key")
	m.Kill()
	if lock, err := locks.TryLock(t.Context(), "other"); lock != nil || err == nil || errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("a dead server gave %v and %v", lock, err)
	}
	told(t, held)
}

// TestServerClock sets the wall clock of the server forward and back, which counts
// by another.
func TestServerClock(t *testing.T) {
	t.Parallel()
	clock := servers.StartClock(t)
	m := servers.StartMemcached(clock)
	a, b := newLocker(t, nil, m), newLocker(t, nil, m)
	held, last := taken(t, a, "key"), uint64(0)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 0} {
		clock.Step(step)
		if _, err := servers.Patient(t.Context(), b.TryLock, "key"); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("with the clock %v from the right time: %v, want ErrHeld", step, err)
		}
		next := taken(t, b, "other")
		if next.Fence() <= last {
			t.Errorf("token %d after %d", next.Fence(), last)
		}
		last = next.Fence()
		if err := unlock(next); err != nil {
			t.Error(err)
		}
	}
	holdsAlone(t, a, held)
}

// TestFenced gets a token, which a cache can count as long as it runs.
func TestFenced(t *testing.T) {
	t.Parallel()
	lock, err := servers.Patient(t.Context(), newLocker(t, nil, shared).Lock, "fenced", holdfast.Fenced())
	if err != nil {
		t.Fatal(err)
	}
	if lock.Fence() == 0 || lock.Fence() >= 1<<53 {
		t.Errorf("token %d", lock.Fence())
	}
}
