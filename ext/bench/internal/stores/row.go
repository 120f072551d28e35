package stores

import (
	"context"
	"crypto/rand"
)

// bareRow is the lock that people write by hand in a database: a row with an owner
// and an expiry, two statements a lock, and a poll. take returns whether it has the
// row, and free whether it had.
func bareRow(take, free func(ctx context.Context, key, owner string) (bool, error), end func()) *Library {
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			owner := rand.Text()
			err := poll(ctx, longPause, func() (bool, error) { return take(ctx, key, owner) })
			return func() error { return gone(free(context.Background(), key, owner)) }, err
		},
		Close: end,
	}
}
