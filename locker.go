package holdfast

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// A Locker acquires locks in one store. All methods may be called from many goroutines.
// Use one Locker per process and store: the goroutines of the process then take turns
// among themselves, and only one per key sends requests to the store.
type Locker struct {
	store  driver.Store
	opts   Options
	engine *engine.Engine
}

// New returns a Locker on a store. New does no I/O. nil means the default options. An error
// matches [ErrInvalid]: an option is bad, or there is no store. The store then stays open.
//
// Close the Locker when it is no longer needed; Close closes the store too.
func New(store driver.Store, opts *Options) (*Locker, error) {
	if store == nil {
		return nil, invalid(ErrInvalid, errors.New("there is no store"))
	}
	resolved, err := opts.resolve()
	if err != nil {
		return nil, err
	}
	lk := &Locker{store: store, opts: resolved}
	lk.engine = engine.New(engine.Config{
		Store:    store,
		Owner:    lk.opts.Owner,
		Poll:     lk.opts.Poll,
		Handle:   lk.handle,
		Words:    engine.Words{Held: heldError, Ahead: aheadError, Lost: lostError},
		Hooks:    lk.hooks(),
		Contexts: lk.opts.Trace.lasts(),
	})
	return lk, nil
}

// Close ends all waits with [ErrClosed], unlocks every lock, and closes the store. Later
// calls return ErrClosed, except Close, which returns nil. Close takes a few seconds at
// most, even if the store does not answer; a lock that could not be released ends with its
// TTL.
func (lk *Locker) Close() error { return lk.engine.Close() }

// Lock acquires the lock on key, and waits for it until ctx ends. The key is any UTF-8 of
// 1 to 512 bytes, prefix included.
//
// Waiters acquire the lock in FIFO order if the store queues waiters. Memcached and the
// sessions of MySQL and MariaDB (mode=session) have no queue. With these stores, a
// process may acquire a lock again and again for a tenth of a second while others wait.
// Then the process backs off for up to half a second, in Memcached until another process has
// the lock. The first process to ask gets the lock.
//
// If ctx ends the wait, the error matches both [ErrHeld] and the error of ctx. If [Wait]
// ends the wait, the error matches ErrHeld, and no error of a context; for a failing store see
// below. If an operator breaks the
// waiter's place in the queue (see [Locker.Break]), the error matches [ErrLost]. If ctx
// carries a lock on the same key (see [Lock.Context]), Lock returns [ErrDeadlock], or
// enters the lock again with [Reenter].
//
// While it waits, Lock tolerates a failing store for up to the TTL; if the store has never
// answered, for up to three seconds or the TTL, whichever is shorter. If ctx or Wait ends the
// wait before then, the error also shows and wraps the last error of the store. The error then
// matches ErrHeld only if the store refused the lock before.
//
// A failed call leaves nothing behind: what it may have left in the store goes to the next
// waiter of this process, or is released in the background.
func (lk *Locker) Lock(ctx context.Context, key string, opts ...LockOption) (*Lock, error) {
	s, err := lk.settings(opts)
	if err != nil {
		return nil, wrap("lock", key, err)
	}
	lock, err := lk.lock(ctx, key, s)
	return lock, wrap("lock", key, err)
}

// TryLock acquires the lock on key at once, or returns an error that matches [ErrHeld]: a
// [*HeldError] that names the holder. TryLock does not overtake waiters. If this process
// holds the key, TryLock fails without a request to the store.
func (lk *Locker) TryLock(ctx context.Context, key string, opts ...LockOption) (*Lock, error) {
	s, err := lk.settings(opts)
	if err == nil && (s.Most > 0 || s.Limited && s.Wait > 0) {
		err = invalid(ErrInvalid, errors.New("TryLock does not wait: use Lock with Wait or Backoff"))
	}
	if err != nil {
		return nil, wrap("trylock", key, err)
	}
	s.Wait, s.Limited = 0, true
	lock, err := lk.lock(ctx, key, s)
	return lock, wrap("trylock", key, err)
}

func (lk *Locker) lock(ctx context.Context, key string, s settings) (*Lock, error) {
	stored, err := lk.storedKey(key)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if lock, err := lk.enterAgain(ctx, stored, s); lock != nil || err != nil {
		return lock, err
	}
	s.Key = stored
	hold, err := lk.engine.Lock(ctx, &s.Request)
	if err != nil {
		return nil, err
	}
	return hold.Handle.(*Lock), nil
}

// handle makes a Lock with a hold for the engine, in one piece of memory.
func (lk *Locker) handle() *engine.Hold {
	l := &Lock{locker: lk}
	l.hold, l.own.Handle = &l.own, l
	return l.hold
}

// enterAgain enters the live lock on the key that ctx carries, or returns an error if the
// call may not enter it. It returns neither lock nor error if ctx carries no such lock.
func (lk *Locker) enterAgain(ctx context.Context, key string, s settings) (*Lock, error) {
	h := carriedBy(ctx, lk)
	for h != nil && (h.lock.hold.Key() != key || h.lock.hold.Err() != nil) {
		h = h.outer
	}
	if h == nil {
		return nil, nil
	}
	hold := h.lock.hold
	switch {
	case !s.reenter:
		return nil, errCarried
	case s.Weight > hold.Weight():
		return nil, errLighter
	case !hold.Enter():
		return nil, nil
	}
	return &Lock{locker: lk, hold: hold}, nil
}

// shown is a stored key as the caller knows it.
func (lk *Locker) shown(key string) string { return key[len(lk.opts.Prefix):] }
