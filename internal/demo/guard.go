package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast"
)

// A Guard protects the sale of one item.
type Guard string

// The guards, in the order of the rounds.
const (
	NoLock   Guard = "no lock"
	Mutex    Guard = "sync.Mutex"
	Holdfast Guard = "Holdfast"

	// heedless is Holdfast in a program that never checks whether the program still holds
	// the lock.
	heedless Guard = "heedless Holdfast"
)

// A sale is the work that a guard protects. The token is 0 if the guard has none.
type sale func(ctx context.Context, token uint64) error

// guarded returns the function that calls a sale under the guard. locks may be nil if the
// guard needs no locks.
func (g Guard) guarded(locks *holdfast.Locker, key string) (func(context.Context, sale) error, error) {
	switch g {
	case NoLock:
		return func(ctx context.Context, sell sale) error { return sell(ctx, 0) }, nil
	case Mutex:
		var mu sync.Mutex
		return func(ctx context.Context, sell sale) error {
			mu.Lock()
			defer mu.Unlock()
			return sell(ctx, 0)
		}, nil
	case Holdfast:
		return func(ctx context.Context, sell sale) error { return heeding(ctx, locks, key, sell) }, nil
	case heedless:
		return func(ctx context.Context, sell sale) error { return notHeeding(ctx, locks, key, sell) }, nil
	}
	return nil, fmt.Errorf("unknown guard %q", g)
}

// heeding is how to use a lock: the context of the work ends with the lock.
func heeding(ctx context.Context, locks *holdfast.Locker, key string, sell sale) error {
	return locks.Do(ctx, key, func(ctx context.Context) error {
		lock, _ := holdfast.FromContext(ctx)
		return sell(ctx, lock.Fence())
	})
}

// notHeeding stands for a write that cannot be called back, for example because the write
// is already in the network. notHeeding reads the token before the work: after a loss,
// Fence would return 0. The work does not get the context of the lock, which would stop
// the write.
func notHeeding(ctx context.Context, locks *holdfast.Locker, key string, sell sale) error {
	lock, err := locks.Lock(ctx, key)
	if err != nil {
		return err
	}
	err = sell(ctx, lock.Fence())
	return errors.Join(err, lock.Unlock())
}
