// Package memlock is a store in memory: locks among the goroutines of one process, with
// every feature of the other stores. The package is the reference for the contract in
// package driver, and the store to use in tests. Package locktest adds faults and virtual
// time.
//
//	locks, err := holdfast.New(memlock.New(), nil)
//
// # How it works
//
// A map leads from keys to books of claims. It has several parts, each with a mutex, so that
// calls on different keys seldom wait for each other. A book lists the holders of the key and
// the queue of waiters. A release grants the lock to the next waiters in the queue and wakes
// only these waiters, by a call on their own channel. There are no goroutines and no timers:
// the next call for a key finds the claims that have expired. A key without claims takes no
// memory. Keys left to expire are swept when a part of the map has doubled.
//
// # What it promises
//
//   - Mutual exclusion while the process runs. Leases are measured by the monotonic clock;
//     steps of the wall clock have no effect.
//   - FIFO order. No claim passes the queue, not even a try that would fit.
//   - Growing fencing tokens. A request that begins later gets a larger token, of whatever
//     key. Requests for different keys at the same time may get equal tokens. A token is the
//     microseconds of the wall clock as of New, or the next number, whichever is larger.
//     Tokens also grow over a restart of the process, unless the clock is behind by then.
//   - A call never blocks. Apart from answers such as [driver.ErrLost], a call fails only
//     with [driver.ErrInvalid] or after Close. The context is ignored.
//
// # What can go wrong
//
//   - The locks exclude nobody outside the process. Two processes with memlock have
//     separate locks.
//   - The monotonic clock stands still while the machine sleeps. A lease then lasts
//     longer than its TTL. The engine counts the sleep, and still tells the holder that
//     the lock is lost.
//   - Every claim ends with the process, even after a renewal with Leave.
//
// # URL
//
//	mem://       a new store for each Open
//	mem://name   one store, shared by every Open of this name in this process; the
//	             last Close deletes the store
//
// There are no parameters.
package memlock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/callbacks"
)

var errClosed = errors.New("memory store is closed")

// A Store keeps claims in memory. Make one with New.
type Store struct {
	space   *space
	session string // sets the claims of this Store apart within the space
	closed  atomic.Bool
	losses  callbacks.Losses
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Local     = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns an empty store.
func New() *Store { return newSpace("").enter() }

// Local implements [driver.Local].
func (s *Store) Local() driver.Store { return s }

// Acquire implements [driver.Store].
func (s *Store) Acquire(_ context.Context, a driver.Ask) (g driver.Grant, err error) {
	calls, err := s.change(a.Key, nil, func(m book.Moment, sh *shelf) (room bool, err error) {
		g, err = sh.Acquire(m, a, s.session)
		return false, err
	})
	ring(calls)
	return g, err
}

// Renew implements [driver.Store].
func (s *Store) Renew(_ context.Context, rs []driver.Renewal) []error {
	return s.each(len(rs), func(i int, calls []call) ([]call, error) {
		return s.change(rs[i].Key, calls, func(m book.Moment, sh *shelf) (room bool, err error) {
			return false, sh.Renew(m, rs[i])
		})
	})
}

// Release implements [driver.Store].
func (s *Store) Release(_ context.Context, rs []driver.Release) []error {
	return s.each(len(rs), func(i int, calls []call) ([]call, error) {
		return s.change(rs[i].Key, calls, func(m book.Moment, sh *shelf) (room bool, err error) {
			err = sh.Release(m, rs[i])
			return err == nil, err
		})
	})
}

// each calls do for n claims, and then wakes the watches that do has added.
func (s *Store) each(n int, do func(i int, calls []call) ([]call, error)) (errs []error) {
	var calls []call
	for i := range n {
		var err error
		if calls, err = do(i, calls); err == nil {
			continue
		}
		if errs == nil {
			errs = make([]error, n)
		}
		errs[i] = err
	}
	ring(calls)
	return errs
}

// change calls do with the shelf of a key. do reports whether a claim has made room. change adds to
// calls the watches to wake.
func (s *Store) change(key string, calls []call, do func(m book.Moment, sh *shelf) (room bool, err error)) ([]call, error) {
	p := s.space.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.closed.Load() {
		return calls, errClosed
	}
	m := p.momentLocked()
	sh := p.take(m, key)
	room, err := do(m, sh)
	return p.put(sh, room, calls), err
}
