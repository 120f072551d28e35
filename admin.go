package holdfast

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// A Holder is what people may know of a lock or of a place in line.
type Holder = driver.Holder

// inspector returns the store's view for people. An error matches
// [errors.ErrUnsupported] if it has none.
func (lk *Locker) inspector() (driver.Inspector, error) {
	lk.mu.Lock()
	defer lk.mu.Unlock()
	if lk.closed {
		return nil, ErrClosed
	}
	if i, ok := lk.store.(driver.Inspector); ok {
		return i, nil
	}
	return nil, fmt.Errorf("this store cannot show its locks: %w", errors.ErrUnsupported)
}

// Holders returns who holds the lock on key, and who waits for it as far as the
// store knows: one contender stands there for all of a process. What it says is
// a hint and may have changed since. It returns an error that matches
// [errors.ErrUnsupported] if the store cannot tell.
func (lk *Locker) Holders(ctx context.Context, key string) ([]Holder, error) {
	stored, err := lk.storedKey(key)
	if err != nil {
		return nil, wrap("holders", key, err)
	}
	i, err := lk.inspector()
	if err != nil {
		return nil, wrap("holders", key, err)
	}
	holders, err := i.Holders(ctx, stored)
	return holders, wrap("holders", key, err)
}

// Keys yields the keys that are locked and begin with prefix, in no order; ""
// means all. The Locker's own prefix is not shown. An error ends the sequence.
func (lk *Locker) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		i, err := lk.inspector()
		if err != nil {
			yield("", wrap("keys", prefix, err))
			return
		}
		for key, err := range i.Keys(ctx, lk.opts.Prefix+prefix) {
			key = strings.TrimPrefix(key, lk.opts.Prefix)
			if !yield(key, wrap("keys", prefix, err)) || err != nil {
				return
			}
		}
	}
}

// Break takes a lock away from its holder, named by the ID that Holders shows,
// and lets the next in line have it at once. The holder learns of it as soon as
// the store can tell, at its next renewal at the latest, and may go on working
// until then: only a fencing token keeps it from doing harm. One who waits is
// sent away with [ErrLost]. It returns an error that matches ErrLost if there is
// nobody of that name.
func (lk *Locker) Break(ctx context.Context, key, id string) error {
	stored, err := lk.storedKey(key)
	if err != nil {
		return wrap("break", key, err)
	}
	i, err := lk.inspector()
	if err != nil {
		return wrap("break", key, err)
	}
	err = i.Break(ctx, stored, id)
	if errors.Is(err, driver.ErrLost) {
		err = fmt.Errorf("%w: no holder with id %.40q", ErrLost, id)
	}
	return wrap("break", key, err)
}
