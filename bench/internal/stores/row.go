package stores

import (
	"context"
	"crypto/rand"
	"sync"
)

// A row is the lock that people write by hand in a database: a row with an owner and an
// expiry, two statements a lock, and a poll. An UPDATE on a held row writes nothing. An
// INSERT that conflicts does write, so the row is inserted only once.
type row struct {
	take func(ctx context.Context, key, owner string) (bool, error) // whether the row was free
	add  func(ctx context.Context, key string) error                // if the row does not exist
	free func(ctx context.Context, key, owner string) (bool, error) // whether the row belonged to owner

	added sync.Map // keys whose row exists
}

func (r *row) lock(ctx context.Context, key string) (func() error, error) {
	owner := rand.Text()
	err := poll(ctx, longPause, func() (bool, error) {
		ok, err := r.take(ctx, key, owner)
		if _, added := r.added.Load(key); ok || err != nil || added {
			return ok, err
		}
		if err := r.add(ctx, key); err != nil {
			return false, err
		}
		r.added.Store(key, true)
		return r.take(ctx, key, owner)
	})
	return func() error { return gone(r.free(context.Background(), key, owner)) }, err
}
