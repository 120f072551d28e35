package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/internal/bounded"
)

// A Group holds several locks together, made by [Locker.LockAll]. If a lock of the Group is
// lost, the guarded work is no longer safe: the contexts of the Group end. The remaining locks
// stay held until Unlock.
type Group struct {
	locks []*Lock
}

// LockAll acquires the locks on all keys: 1 to 64 keys, equal keys count once. It acquires
// them one after the other, in the byte order of the keys, so calls of LockAll never
// deadlock among themselves.
//
// If a lock cannot be acquired, LockAll releases the locks that it has acquired before, in
// the background if ctx ends before the store has answered. Options apply to every lock;
// the limit of Wait applies to the whole call.
//
// A Lock inside a LockAll, or a LockAll inside a Lock, can still deadlock: limit such calls
// with [Wait].
func (lk *Locker) LockAll(ctx context.Context, keys []string, opts ...LockOption) (*Group, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(sorted) == 0 || len(sorted) > MaxGroup {
		return nil, invalid(ErrInvalid, fmt.Errorf("holdfast: lockall: %d keys; it must be from 1 to %d", len(sorted), MaxGroup))
	}
	s, err := lk.settings(opts)
	if err != nil {
		return nil, wrap("lockall", sorted[0], err)
	}
	began := lk.engine.Now()
	g := &Group{}
	for _, key := range sorted {
		each := s
		if s.Limited {
			each.Wait = max(s.Wait-(lk.engine.Now()-began), 0)
		}
		lock, err := lk.lock(ctx, key, each)
		if err != nil {
			return nil, errors.Join(wrap("lockall", key, err), bounded.Within(ctx, g.Unlock)) // a silent store takes seconds
		}
		g.locks = append(g.locks, lock)
	}
	return g, nil
}

// Locks returns the locks of the group, in the order of their keys.
func (g *Group) Locks() []*Lock { return slices.Clone(g.locks) }

// Lock returns the lock on a key, nil if the key is not in the group.
func (g *Group) Lock(key string) *Lock {
	for _, l := range g.locks {
		if l.Key() == key {
			return l
		}
	}
	return nil
}

// Err returns nil while every lock is held, and otherwise the error of a lock that has ended,
// see [Lock.Err]. Like Lock.Err, Err reads the clock and asks no store.
func (g *Group) Err() error {
	for _, l := range g.locks {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Progress is [Lock.Progress] of every lock: it returns nil, or the error of a lock that has
// ended.
func (g *Group) Progress() error {
	var first error
	for _, l := range g.locks {
		first = cmp.Or(first, l.Progress())
	}
	return first
}

// Context returns a copy of parent that carries every lock of the Group, and ends with the
// first lock that ends. See [Lock.Context].
func (g *Group) Context(parent context.Context) context.Context {
	for _, l := range g.locks {
		parent = l.Context(parent)
	}
	return parent
}

// Unlock releases every lock of the Group, at the same time, and returns the errors joined.
// Every lock is released, even if the release of a different lock fails (see [Lock.Unlock]).
func (g *Group) Unlock() error {
	errs := make([]error, len(g.locks))
	var wg sync.WaitGroup
	for i, l := range g.locks {
		wg.Go(func() { errs[i] = l.Unlock() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
