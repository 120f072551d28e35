// Package memlock is a store in memory: locks among the goroutines of one
// process, with everything that the other stores have. It is the reference of
// the contract in package driver, and the store to test against.
//
//	locks := holdfast.New(memlock.New(), nil)
//
// # How it works
//
// One mutex guards a map from keys to books of claims; a book lists who holds
// the key and who stands in line. Whoever releases a claim lets the next in
// line in and wakes just those, by a call on their own channel. There are no
// goroutines and no timers: a claim that has run out is found by the next call
// for its key. A key that nobody wants takes no memory; those that were left
// to run out are swept away when the map has doubled.
//
// # What it promises
//
//   - Mutual exclusion while the process runs. Leases are measured by the
//     monotonic clock, so steps of the wall clock change nothing.
//   - First come, first served. Nobody passes the line, not even a try that
//     would fit.
//   - Fencing tokens that grow over all keys of the store: microseconds of the
//     wall clock as of New, or the next number, whichever is larger. They grow
//     over a restart of the process too, unless the clock is behind by then.
//   - A call never blocks and never fails but by [driver.ErrInvalid] or after
//     Close, so no context is looked at.
//
// # What can go wrong
//
//   - It excludes nobody outside the process. Two processes with memlock each
//     have their own locks.
//   - The monotonic clock stands still while the machine sleeps. A lease then
//     lasts longer than its TTL; the engine, which counts the sleep, tells its
//     holder that it is lost all the same.
//   - Everything ends with the process. [driver.Claim.Leave] does not outlive
//     it.
//
// # URL
//
//	mem://       a new store of its own for each Open
//	mem://name   one store for all who Open this name in this process; it is
//	             forgotten when the last of them has closed it
//
// There are no parameters.
package memlock

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

var errClosed = errors.New("memory store is closed")

// A Store keeps claims in memory. Make one with New.
type Store struct {
	space   *space
	session string // tells its claims from those of others in its space
	closed  bool   // guarded by space.mu
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns an empty store.
func New() *Store { return newSpace("").enter() }

// Acquire implements [driver.Store].
func (s *Store) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	sp := s.space
	sp.mu.Lock()
	if s.closed {
		sp.mu.Unlock()
		return driver.Grant{}, errClosed
	}
	m := sp.moment()
	sh := sp.take(m, c.Key)
	g, err := sh.Acquire(m, c, s.session)
	calls := sp.put(sh, false, nil)
	sp.mu.Unlock()
	ring(calls)
	return g, err
}

// Renew implements [driver.Store].
func (s *Store) Renew(_ context.Context, cs []driver.Claim) []error {
	return s.each(cs, (*book.Book).Renew, false)
}

// Release implements [driver.Store].
func (s *Store) Release(_ context.Context, cs []driver.Claim) []error {
	return s.each(cs, (*book.Book).Release, true)
}

// each does the same to every claim. ends says that it may make room.
func (s *Store) each(cs []driver.Claim, do func(*book.Book, book.Moment, driver.Claim) error, ends bool) (errs []error) {
	sp := s.space
	sp.mu.Lock()
	if s.closed {
		sp.mu.Unlock()
		return slices.Repeat([]error{errClosed}, len(cs))
	}
	m := sp.moment()
	var calls []call
	for i := range cs {
		sh := sp.take(m, cs[i].Key)
		err := do(&sh.Book, m, cs[i])
		calls = sp.put(sh, ends && err == nil, calls)
		if err == nil {
			continue
		}
		if errs == nil {
			errs = make([]error, len(cs))
		}
		errs[i] = err
	}
	sp.mu.Unlock()
	ring(calls)
	return errs
}
