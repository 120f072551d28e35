package certlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/memlock"
)

const name = "issue_cert_example.com"

// shared is a store that outlives the Lockers on it.
type shared struct{ *memlock.Store }

func (shared) Close() error { return nil }

// pair runs a test with two processes that share a store, in virtual time.
func pair(t *testing.T, test func(t *testing.T, a, b *Storage)) {
	synctest.Test(t, func(t *testing.T) {
		store := shared{memlock.New()}
		var both [2]*Storage
		for i := range both {
			locks := must.Get(holdfast.New(store, nil))
			defer locks.Close()
			both[i] = New(&certmagic.FileStorage{Path: t.TempDir()}, locks)
		}
		test(t, both[0], both[1])
	})
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func tryLock(t *testing.T, s *Storage, want bool) {
	t.Helper()
	if ok, err := s.TryLock(t.Context(), name); ok != want || err != nil {
		t.Errorf("TryLock: %v, %v; want %v", ok, err, want)
	}
}

// handOver unlocks the name, which a holds, and locks and unlocks it by b.
func handOver(t *testing.T, a, b *Storage) {
	t.Helper()
	tryLock(t, b, false)
	succeed(t, a.Unlock(t.Context(), name))
	tryLock(t, b, true)
	succeed(t, b.Unlock(t.Context(), name))
}

// breakLock takes the lock away from who holds it.
func breakLock(t *testing.T, s *Storage) {
	t.Helper()
	holders, err := s.locks.Holders(t.Context(), name)
	succeed(t, err)
	succeed(t, s.locks.Break(t.Context(), name, holders[0].ID))
	synctest.Wait()
}

func TestLocks(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		succeed(t, a.Lock(t.Context(), name))
		tryLock(t, b, false)
		succeed(t, a.RenewLockLease(t.Context(), name, time.Hour))
		time.Sleep(time.Hour)
		tryLock(t, b, false)
		done := make(chan error)
		go func() { done <- b.Lock(t.Context(), name) }()
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		succeed(t, a.Unlock(ended, name))
		succeed(t, <-done)
		tryLock(t, a, false)
		succeed(t, b.Unlock(t.Context(), name))
		tryLock(t, a, true)
		succeed(t, a.Unlock(t.Context(), name))
		if len(a.held)+len(b.held) > 0 {
			t.Errorf("names are kept: %v, %v", a.held, b.held)
		}
	})
}

func TestNotHeld(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		succeed(t, a.Lock(t.Context(), name))
		if err := b.Unlock(t.Context(), name); !errors.Is(err, holdfast.ErrReleased) {
			t.Errorf("Unlock of another's lock: %v", err)
		}
		if err := b.RenewLockLease(t.Context(), name, time.Second); !errors.Is(err, holdfast.ErrReleased) {
			t.Errorf("RenewLockLease of another's lock: %v", err)
		}
		tryLock(t, b, false)
		if ok, err := b.TryLock(t.Context(), ""); ok || !errors.Is(err, holdfast.ErrInvalidKey) {
			t.Errorf("TryLock without a name: %v, %v", ok, err)
		}
		succeed(t, a.Unlock(t.Context(), name))
	})
}

// A lease that was lost is taken again when it is renewed.
func TestRenewAfterLoss(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		succeed(t, a.Lock(t.Context(), name))
		breakLock(t, a)
		tryLock(t, b, true)
		if err := a.RenewLockLease(t.Context(), name, time.Minute); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("RenewLockLease while another holds the lock: %v", err)
		}
		succeed(t, b.Unlock(t.Context(), name))
		succeed(t, a.RenewLockLease(t.Context(), name, time.Minute))
		handOver(t, a, b)
	})
}

// A goroutine that has lost a lock does not release the lock of a second goroutine.
func TestUnlockAfterLoss(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		succeed(t, a.Lock(t.Context(), name))
		breakLock(t, a)
		succeed(t, a.Lock(t.Context(), name)) // by another goroutine
		succeed(t, a.Unlock(t.Context(), name))
		tryLock(t, b, false)
		succeed(t, a.RenewLockLease(t.Context(), name, time.Minute))
		succeed(t, a.Unlock(t.Context(), name))
		tryLock(t, b, true)
		breakLock(t, b)
		succeed(t, b.Unlock(t.Context(), name))
	})
}

// attempts returns a context as certmagic gives the attempts of one run.
func attempts(ctx context.Context) context.Context {
	return context.WithValue(ctx, certmagic.AttemptsCtxKey, new(int))
}

// twoRuns leaves a name to two runs of a: the first has lost its lock, and the second
// has it now.
func twoRuns(t *testing.T, a *Storage) (first, second context.Context) {
	t.Helper()
	first, second = attempts(t.Context()), attempts(t.Context())
	succeed(t, a.Lock(t.Context(), name))
	succeed(t, a.RenewLockLease(first, name, time.Minute))
	breakLock(t, a)
	succeed(t, a.Lock(t.Context(), name))
	succeed(t, a.RenewLockLease(second, name, time.Minute))
	return first, second
}

// A run that has lost its lock does not pass for the one that holds it now.
func TestRenewWhileAnotherRunHolds(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		first, second := twoRuns(t, a)
		for range 2 {
			if err := a.RenewLockLease(first, name, time.Minute); !errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("the run that has lost the lock: %v, want ErrHeld", err)
			}
			succeed(t, a.RenewLockLease(second, name, time.Minute))
		}
		renewed := make(chan error)
		go func() { renewed <- a.RenewLockLease(first, name, time.Hour) }()
		synctest.Wait()
		succeed(t, a.Unlock(t.Context(), name)) // by the second run
		succeed(t, <-renewed)
		tryLock(t, b, false)
		succeed(t, a.RenewLockLease(first, name, time.Minute))
		succeed(t, a.Unlock(t.Context(), name))
		tryLock(t, b, true)
		succeed(t, b.Unlock(t.Context(), name))
		if len(a.held)+len(b.held) > 0 {
			t.Errorf("names are kept: %v, %v", a.held, b.held)
		}
	})
}

// The run that holds the lock ends while the other one pauses before its next attempt.
func TestUnlockWhileAnotherRunPauses(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		first, _ := twoRuns(t, a)
		succeed(t, a.Unlock(t.Context(), name)) // by the second run
		succeed(t, a.RenewLockLease(first, name, time.Minute))
		handOver(t, a, b)
	})
}

// A run that has taken the lock again keeps it when the one that lost it then gives up.
func TestUnlockAfterBothHaveLost(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		first, _ := twoRuns(t, a)
		breakLock(t, a)
		succeed(t, a.RenewLockLease(first, name, time.Minute))
		succeed(t, a.Unlock(t.Context(), name)) // by the second run
		succeed(t, a.RenewLockLease(first, name, time.Minute))
		handOver(t, a, b)
	})
}

// Of two goroutines that cannot be told apart, none is told that it holds the lock.
func TestRenewWithoutARun(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		succeed(t, a.Lock(t.Context(), name))
		succeed(t, a.RenewLockLease(t.Context(), name, time.Minute))
		breakLock(t, a)
		succeed(t, a.Lock(t.Context(), name))
		if err := a.RenewLockLease(t.Context(), name, time.Minute); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("RenewLockLease by one of two: %v, want ErrLost", err)
		}
		succeed(t, a.Unlock(t.Context(), name))
		succeed(t, a.RenewLockLease(t.Context(), name, time.Minute))
		succeed(t, a.Unlock(t.Context(), name))
	})
}

// If a lock is unlocked as the process ends, and was waiting to be taken again, the lock is
// not kept.
func TestUnlockWhileItIsRenewed(t *testing.T) {
	pair(t, func(t *testing.T, a, b *Storage) {
		succeed(t, a.Lock(t.Context(), name))
		breakLock(t, a)
		tryLock(t, b, true)
		renewed := make(chan error)
		go func() { renewed <- a.RenewLockLease(t.Context(), name, time.Hour) }()
		synctest.Wait()
		succeed(t, a.Unlock(t.Context(), name))
		succeed(t, b.Unlock(t.Context(), name))
		if err := <-renewed; !errors.Is(err, holdfast.ErrReleased) {
			t.Errorf("RenewLockLease: %v, want ErrReleased", err)
		}
		tryLock(t, b, true)
		succeed(t, b.Unlock(t.Context(), name))
	})
}
