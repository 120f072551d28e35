package stores

import (
	"context"
	"crypto/rand"
	"database/sql"
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

// rowIn is a row in a database whose statements have ? for each argument.
func rowIn(db *sql.DB, add, free string, take func(ctx context.Context, key, owner string) (sql.Result, error)) *Library {
	r := &row{
		take: func(ctx context.Context, key, owner string) (bool, error) { return affected(take(ctx, key, owner)) },
		add: func(ctx context.Context, key string) error {
			_, err := db.ExecContext(ctx, add, key)
			return err
		},
		free: func(ctx context.Context, key, owner string) (bool, error) {
			return affected(db.ExecContext(ctx, free, key, owner))
		},
	}
	return &Library{r.lock, func() { _ = db.Close() }}
}

// affected reports whether a statement has changed a row.
func affected(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
