package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A Group is several locks that are held together. If one is lost, the work
// that they guard is no longer safe: the contexts of the Group end.
type Group struct {
	locks []*Lock
}

// LockAll takes the locks on all keys, 1 to 64 of them; equal ones count once.
// It takes them one after the other in the order of their bytes, so that calls
// of LockAll never wait for each other in a circle. If one cannot be had, those
// taken before are given back. Options hold for each lock; the limit of Wait is
// for all of them together.
//
// A Lock inside a LockAll, or the other way round, can still wait in a circle:
// give such calls a Wait.
func (lk *Locker) LockAll(ctx context.Context, keys []string, opts ...LockOption) (*Group, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(keys)))
	if len(sorted) == 0 || len(sorted) > MaxKeys {
		return nil, invalid(ErrInvalid, fmt.Errorf("holdfast: lockall: %d keys; it must be from 1 to %d", len(sorted), MaxKeys))
	}
	s, err := lk.settings(opts)
	if err != nil {
		return nil, wrap("lockall", sorted[0], err)
	}
	began := lk.now()
	g := &Group{}
	for _, key := range sorted {
		each := s
		if s.limited {
			each.wait = max(s.wait-(lk.now()-began), 0)
		}
		lock, err := lk.lock(ctx, key, each)
		if err != nil {
			return nil, errors.Join(wrap("lockall", key, err), g.Unlock())
		}
		g.locks = append(g.locks, lock)
	}
	return g, nil
}

// Locks returns the locks of the group, in the order of their keys.
func (g *Group) Locks() []*Lock { return slices.Clone(g.locks) }

// Lock returns the lock on a key, nil if it is not in the group.
func (g *Group) Lock(key string) *Lock {
	for _, l := range g.locks {
		if l.Key() == key {
			return l
		}
	}
	return nil
}

// Err returns nil while all locks are held, and otherwise the error of one that
// is not.
func (g *Group) Err() error {
	for _, l := range g.locks {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Context returns a copy of parent that carries all locks and ends when the
// first of them does.
func (g *Group) Context(parent context.Context) context.Context {
	for _, l := range g.locks {
		parent = l.Context(parent)
	}
	return parent
}

// Unlock gives all locks back, at the same time, and returns what went wrong
// with any of them (see [Lock.Unlock]).
func (g *Group) Unlock() error {
	errs := make([]error, len(g.locks))
	var wg sync.WaitGroup
	for i, l := range g.locks {
		wg.Go(func() { errs[i] = l.Unlock() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
