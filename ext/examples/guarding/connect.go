package guarding

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/pglock"
	"github.com/holdfast-go/holdfast/fence"
)

// Connect connects to a Postgres server that has the accounts, the locks and the
// fences. Others follow a process that died after three seconds.
func Connect(ctx context.Context, url string) (*PGX, error) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return nil, err
	}
	return &PGX{
		Pool:   pool,
		Locks:  holdfast.New(pglock.New(pool, nil), &holdfast.Options{TTL: 3 * time.Second}),
		Fences: fence.SQL{Dialect: fence.Postgres},
	}, nil
}

// Create makes the tables unless they are there.
func (p *PGX) Create(ctx context.Context) error {
	_, err := p.Pool.Exec(ctx, Schema)
	db := stdlib.OpenDBFromPool(p.Pool)
	return errors.Join(err, pglock.New(p.Pool, nil).Create(ctx), p.Fences.Create(ctx, db), db.Close())
}

// Close gives back what Connect has opened.
func (p *PGX) Close() error {
	err := p.Locks.Close()
	p.Pool.Close()
	return err
}
