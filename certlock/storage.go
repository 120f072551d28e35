// Package certlock lets certmagic, and with it Caddy, take its locks from any store of
// Holdfast, independent of certmagic's storage.
//
//	storage := certlock.New(&certmagic.FileStorage{Path: "/shared/certs"}, locks)
//	config := certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: issuers})
//
// certmagic locks a name while obtaining or renewing the certificate. So only one of the
// processes with a shared storage asks the issuer. The waiting processes find the
// certificate when they acquire the lock. This package changes three things: a dead
// process leaves no lock beyond the TTL, and no lock file at all; waiters are notified in
// FIFO order if the store has a queue; and clocks need not agree.
//
// # What can go wrong
//
// certmagic is not notified when a lock is lost, because its process was paused or cut
// off. certmagic then goes on, and two processes may ask an issuer for the same
// certificate. The second request is wasteful but harmless: the storage ends up with one
// of the certificates. After a failure, certmagic renews the lock before the next try.
// The renewal acquires the lock again if the lock was lost. certmagic then checks whether
// a different process has obtained the certificate.
//
// certmagic names a lock, but not the calling goroutine. Renewals of different goroutines
// are distinguished by the counter of attempts in the context (certmagic.AttemptsCtxKey),
// which certmagic sets for every renewal. An Unlock has no counter. If a goroutine has lost
// its lock, and a second goroutine of the process has acquired the lock since, the first
// Unlock counts as the loser's Unlock, unless the loser is just renewing. The lock may then
// stay with the process until both goroutines have unlocked it. If a goroutine is paused
// between Lock and the first renewal for longer than the TTL, the goroutine may mistake a
// second goroutine's new lock for its own.
//
// The names of certmagic, such as issue_cert_example.com, are the keys in the store. Give
// the Locker its own Prefix.
package certlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
)

// A Storage is a certmagic storage with the locks of a Locker.
type Storage struct {
	certmagic.Storage
	locks *holdfast.Locker

	mu   sync.Mutex
	held map[string][]*holding // by name; only the last holding may still be held
}

// A holding is the lock of a call of Lock or TryLock, until its Unlock.
type holding struct {
	lock     *holdfast.Lock
	attempts *int // identifies a run of certmagic; nil before the first renewal
	renewing bool
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a storage that keeps its data in storage, and takes its locks from locks. All
// processes must share both.
func New(storage certmagic.Storage, locks *holdfast.Locker) *Storage {
	return &Storage{Storage: storage, locks: locks, held: make(map[string][]*holding)}
}

// Lock acquires the lock on a name, and waits until ctx ends. The errors are the errors of
// [holdfast.Locker.Lock].
func (s *Storage) Lock(ctx context.Context, name string) error {
	lock, err := s.locks.Lock(ctx, name)
	if err == nil {
		s.add(name, lock)
	}
	return err
}

// TryLock acquires the lock on a name at once, or returns false if the lock is held. Other
// errors are the errors of [holdfast.Locker.TryLock].
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lock, err := s.locks.TryLock(ctx, name)
	if errors.Is(err, holdfast.ErrHeld) {
		return false, nil
	}
	if err == nil {
		s.add(name, lock)
	}
	return err == nil, err
}

// RenewLockLease acquires the lock on a name again if the lock was lost, and waits until
// ctx ends or d is over. A lock that is held is renewed in the background anyway. A
// goroutine also waits if it has lost the lock to a second goroutine of the process. If
// the context has no counter of attempts to distinguish the goroutines, the error matches
// [holdfast.ErrLost].
func (s *Storage) RenewLockLease(ctx context.Context, name string, d time.Duration) error {
	h, lost, err := s.renewing(ctx, name)
	if err != nil {
		return err
	}
	if lost.Err() == nil {
		s.renewed(name, h, lost)
		return nil
	}
	lock, err := s.locks.Lock(ctx, name, holdfast.Wait(d))
	if err != nil {
		s.renewed(name, h, lost)
		return err
	}
	_ = lost.Unlock() // It is known to be lost.
	if !s.renewed(name, h, lock) {
		return errors.Join(notHeld("renew", name), lock.Unlock())
	}
	return nil
}

// Unlock releases a lock. The context is ignored: a cancelled caller releases its lock,
// too. Unlock of a lock that was lost before does nothing and returns no error.
func (s *Storage) Unlock(_ context.Context, name string) error {
	lock := s.remove(name)
	if lock == nil {
		return notHeld("unlock", name)
	}
	if err := lock.Unlock(); !errors.Is(err, holdfast.ErrLost) {
		return err
	}
	return nil
}

func (s *Storage) add(name string, lock *holdfast.Lock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[name] = append(s.held[name], &holding{lock: lock})
}

// renewing returns the holding of the caller, and its lock.
func (s *Storage) renewing(ctx context.Context, name string) (*holding, *holdfast.Lock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := s.findLocked(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	h.renewing = true
	return h, h.lock, nil
}

// findLocked returns the holding of the caller.
func (s *Storage) findLocked(ctx context.Context, name string) (*holding, error) {
	attempts, _ := ctx.Value(certmagic.AttemptsCtxKey).(*int)
	var fresh []*holding
	for _, h := range s.held[name] {
		switch h.attempts {
		case nil:
			fresh = append(fresh, h)
		case attempts:
			return h, nil
		}
	}
	switch n := len(fresh); {
	case n > 1 && attempts == nil:
		return nil, fmt.Errorf("certlock: renew %.512q: %d goroutines have taken it, of which one at most holds it: %w", name, n, holdfast.ErrLost)
	case n > 0:
		fresh[n-1].attempts = attempts
		return fresh[n-1], nil
	case attempts != nil && len(s.held[name]) == 1:
		// A different goroutine has unlocked this goroutine's holding, and has left its own.
		h := s.held[name][0]
		h.attempts = attempts
		return h, nil
	}
	return nil, notHeld("renew", name)
}

// renewed ends a renewal, after which the holding has the given lock. renewed reports
// whether the name is still locked: false if the name was unlocked meanwhile.
func (s *Storage) renewed(name string, h *holding, lock *holdfast.Lock) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := h.lock != lock
	h.lock, h.renewing = lock, false
	i := slices.Index(s.held[name], h)
	if taken && i >= 0 {
		s.held[name] = append(slices.Delete(s.held[name], i, i+1), h)
	}
	return i >= 0
}

// remove removes the oldest holding that is not renewing, and returns its lock. If another
// goroutine has acquired the lock since, the oldest holding was lost. certmagic does not
// name the goroutine that unlocks, and an Unlock must not release a lock that another
// goroutine still needs. A goroutine that renews does not unlock.
func (s *Storage) remove(name string) *holdfast.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.held[name]
	if len(all) == 0 {
		return nil
	}
	i := max(slices.IndexFunc(all, func(h *holding) bool { return !h.renewing }), 0)
	lock := all[i].lock
	if s.held[name] = slices.Delete(all, i, i+1); len(all) == 1 {
		delete(s.held, name)
	}
	return lock
}

func notHeld(op, name string) error {
	return fmt.Errorf("certlock: %s %.512q: %w", op, name, holdfast.ErrReleased)
}
