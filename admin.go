package holdfast

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/silence"
)

// A Holder is the public view of a lock or of a place in the queue. Its ID names the holder to
// [Locker.Break], and gives no other right.
type Holder = driver.Holder

// inspector returns the store's view for people. If the store has no such view, the error
// matches [errors.ErrUnsupported].
func (lk *Locker) inspector() (driver.Inspector, error) {
	if lk.engine.Closed() {
		return nil, ErrClosed
	}
	if i, ok := lk.store.(driver.Inspector); ok {
		return i, nil
	}
	return nil, fmt.Errorf("this store cannot show its locks: %w", errors.ErrUnsupported)
}

// Holders returns the holders of the lock on key, and the waiters as far as the store
// knows them: one contender stands for all waiters of a process. The list is a hint and
// may have changed since. A free key has an empty list and no error.
//
// Holders asks the store once, and ends with ctx. If the store cannot list holders, the error
// matches [errors.ErrUnsupported]. After Close, the error matches [ErrClosed].
func (lk *Locker) Holders(ctx context.Context, key string) ([]Holder, error) {
	stored, err := lk.storedKey(key)
	if err != nil {
		return nil, wrap("holders", key, err)
	}
	i, err := lk.inspector()
	if err != nil {
		return nil, wrap("holders", key, err)
	}
	began := time.Now()
	holders, err := i.Holders(ctx, stored)
	return holders, wrap("holders", key, silence.For(ctx, err, time.Since(began)))
}

// Keys yields the locked keys that begin with prefix, in no order; "" means every key.
// The Locker's own prefix is not shown. The sequence is a hint: a key may be locked or
// released meanwhile. The loop may stop early, and may use the Locker.
//
// An error ends the sequence, also the error of ctx. If the store cannot list keys, the only
// error matches [errors.ErrUnsupported].
func (lk *Locker) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		i, err := lk.inspector()
		if err != nil {
			yield("", wrap("keys", prefix, err))
			return
		}
		began := time.Now()
		for key, err := range i.Keys(ctx, lk.opts.Prefix+prefix) {
			key, err = strings.TrimPrefix(key, lk.opts.Prefix), silence.For(ctx, err, time.Since(began))
			began = time.Now()
			if !yield(key, wrap("keys", prefix, err)) || err != nil {
				return
			}
		}
	}
}

// Break ends the lock of a holder, named by the ID of [Locker.Holders], and lets the first
// waiter acquire the lock at once. The holder learns of the loss as soon as the store can
// tell, at the next renewal at the latest. The holder may go on working until then: only a
// fencing token prevents corruption.
//
// If the id names a waiter, the waiter's call fails with [ErrLost]. If no holder and no waiter
// has the id, Break returns an error that matches ErrLost.
//
// If ctx ends before the answer of the store, the lock may be broken or not: ask Holders. If
// the store cannot break locks, the error matches [errors.ErrUnsupported].
func (lk *Locker) Break(ctx context.Context, key, id string) error {
	stored, err := lk.storedKey(key)
	if err != nil {
		return wrap("break", key, err)
	}
	i, err := lk.inspector()
	if err != nil {
		return wrap("break", key, err)
	}
	began := time.Now()
	err = i.Break(ctx, stored, id)
	err = silence.For(ctx, err, time.Since(began))
	if errors.Is(err, driver.ErrLost) {
		err = fmt.Errorf("%w: no holder with id %.40q", ErrLost, id)
	}
	return wrap("break", key, err)
}
