package pglock

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/sqllock"
)

// A client runs statements on a pool, which prepares them by itself. Where a
// pooler hands out the server's connections, it must not: what one has prepared,
// the next does not know.
type client struct {
	pool *pgxpool.Pool

	looked  atomic.Bool
	between atomic.Bool // there is a pooler
}

var _ sqllock.Client = (*client)(nil)

func (c *client) Query(ctx context.Context, st sqllock.Statement, each func(sqllock.Scan) error) error {
	args, err := c.arguments(ctx, st)
	if err != nil {
		return err
	}
	rows, err := c.pool.Query(ctx, st.Text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (c *client) Exec(ctx context.Context, st sqllock.Statement) (sqllock.Result, error) {
	args, err := c.arguments(ctx, st)
	if err != nil {
		return sqllock.Result{}, err
	}
	tag, err := c.pool.Exec(ctx, st.Text, args...)
	return sqllock.Result{Rows: tag.RowsAffected()}, err
}

// arguments has a statement that will hardly come again leave no trace, and all
// of them where there is a pooler.
func (c *client) arguments(ctx context.Context, st sqllock.Statement) ([]any, error) {
	if !c.looked.Load() {
		if err := c.look(ctx); err != nil {
			return nil, err
		}
	}
	if st.Once || c.between.Load() {
		return append([]any{pgx.QueryExecModeExec}, st.Args...), nil
	}
	return st.Args, nil
}

// look finds out whether there is a pooler.
func (c *client) look(ctx context.Context) error {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	between, err := pooled(ctx, conn.Conn())
	if err != nil {
		return err
	}
	c.between.Store(between)
	c.looked.Store(true)
	return nil
}

// Close leaves the pool open.
func (c *client) Close() error { return nil }
