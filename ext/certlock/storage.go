// Package certlock lets certmagic, and with it Caddy, take its locks from any store of
// Holdfast, whatever its storage is.
//
//	storage := certlock.New(&certmagic.FileStorage{Path: "/shared/certs"}, locks)
//	config := certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: issuers})
//
// certmagic takes a lock on a name while it obtains or renews its certificate, so that
// of all processes that share a storage one asks the issuer, and the others find the
// certificate when they get the lock. What this package changes: a process that dies
// leaves no lock that lasts longer than its TTL, and no lock file at all; those who
// wait are woken, in the order of their coming; and clocks need not agree.
//
// # What can go wrong
//
// certmagic is not told when a lock is lost, because its process was paused or cut off.
// It then goes on, and two processes may ask an issuer for the same certificate. That
// is wasteful but does no harm: the storage has one of them in the end. Before it tries
// an issuer again after a failure, certmagic renews its lock: that takes the lock again
// if it was lost, and certmagic then looks whether another has obtained the certificate.
//
// The names of certmagic, such as issue_cert_example.com, are the keys in the store.
// Give the Locker a Prefix of its own.
package certlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
)

// A Storage is one of certmagic's with other locks.
type Storage struct {
	certmagic.Storage
	locks *holdfast.Locker

	mu   sync.Mutex
	held map[string][]*holdfast.Lock // by name; only the last of them may still be held
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a storage that keeps what it is given in storage, and takes its locks
// from locks. All processes must share both.
func New(storage certmagic.Storage, locks *holdfast.Locker) *Storage {
	return &Storage{Storage: storage, locks: locks, held: make(map[string][]*holdfast.Lock)}
}

// Lock takes the lock on a name, and waits for it until ctx ends. The errors are those
// of [holdfast.Locker.Lock].
func (s *Storage) Lock(ctx context.Context, name string) error {
	lock, err := s.locks.Lock(ctx, name)
	if err == nil {
		s.add(name, lock)
	}
	return err
}

// TryLock takes the lock on a name at once, or returns false if another holds it. Other
// errors are those of [holdfast.Locker.TryLock].
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

// RenewLockLease takes the lock on a name again if it was lost, and waits for it until
// ctx ends or d is over. As long as the lock is held, it is renewed anyway.
func (s *Storage) RenewLockLease(ctx context.Context, name string, d time.Duration) error {
	lost := s.last(name)
	switch {
	case lost == nil:
		return notHeld("renew", name)
	case lost.Err() == nil:
		return nil
	}
	lock, err := s.locks.Lock(ctx, name, holdfast.Wait(d))
	if err != nil {
		return err
	}
	s.add(name, lock)
	return s.Unlock(ctx, name) // of the one that was lost
}

// Unlock gives a lock back. It needs no context: a cancelled caller gives its lock back,
// too. A lock that was lost before is nothing to give back, and no error.
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
	s.held[name] = append(s.held[name], lock)
}

// last returns the lock that was taken last, nil if there is none.
func (s *Storage) last(name string) *holdfast.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.held[name]); n > 0 {
		return s.held[name][n-1]
	}
	return nil
}

// remove returns the lock that was taken first, and forgets it. If another goroutine
// has taken one since, this one was lost: certmagic does not say whose it gives back,
// and nobody shall give back what another still needs.
func (s *Storage) remove(name string) *holdfast.Lock {
	s.mu.Lock()
	defer s.mu.Unlock()
	locks := s.held[name]
	if len(locks) == 0 {
		return nil
	}
	if s.held[name] = locks[1:]; len(locks) == 1 {
		delete(s.held, name)
	}
	return locks[0]
}

func notHeld(op, name string) error {
	return fmt.Errorf("certlock: %s %q: %w", op, name, holdfast.ErrReleased)
}
