package pglock

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/internal/detached"
	"github.com/holdfast-go/holdfast/internal/silence"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// A client runs statements on a pool, which prepares them by itself. With a pooler,
// statements must not be prepared: the next server connection does not know a statement
// that the last has prepared.
type client struct {
	pool *pgxpool.Pool

	poolerKnown atomic.Bool
	pooler      atomic.Bool // there is a pooler
}

var _ sqlstore.Client = (*client)(nil)

func (c *client) Query(ctx context.Context, st sqlstore.Statement, each func(sqlstore.Scan) error) error {
	return c.run(ctx, st, func(ctx context.Context, conn *pgx.Conn, args []any) error {
		rows, err := conn.Query(ctx, st.Text, args...)
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
	})
}

func (c *client) Exec(ctx context.Context, st sqlstore.Statement) (r sqlstore.Result, err error) {
	err = c.run(ctx, st, func(ctx context.Context, conn *pgx.Conn, args []any) error {
		tag, err := conn.Exec(ctx, st.Text, args...)
		r.Rows = tag.RowsAffected()
		return err
	})
	return r, err
}

// run runs a statement on a connection of the pool. The statement of a detached call
// runs to its end.
func (c *client) run(ctx context.Context, st sqlstore.Statement, do func(context.Context, *pgx.Conn, []any) error) error {
	conn, err := c.acquire(ctx)
	if err != nil {
		return silence.For(ctx, err, 0) // pgx has its own limit for connecting
	}
	defer conn.Release()
	ctx = detached.Sent(ctx)
	args, err := c.arguments(ctx, conn.Conn(), st)
	if err != nil {
		return err
	}
	return do(ctx, conn.Conn(), args)
}

// acquire takes a connection of the pool. While the pool has room, acquire does not end
// when the caller of a detached call leaves, because no long wait is possible. The pool
// pings an idle connection first, and closes the connection if the ping is interrupted.
func (c *client) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	if use := c.pool.Stat(); use.AcquiredConns()+use.ConstructingConns() < use.MaxConns() {
		ctx = detached.Sent(ctx)
	}
	return c.pool.Acquire(ctx)
}

// arguments sends a statement unprepared if the statement will hardly come again, or if
// there is a pooler.
func (c *client) arguments(ctx context.Context, conn *pgx.Conn, st sqlstore.Statement) ([]any, error) {
	if !c.poolerKnown.Load() {
		between, err := pooled(ctx, conn)
		if err != nil {
			return nil, err
		}
		c.pooler.Store(between)
		c.poolerKnown.Store(true)
	}
	if st.Once || c.pooler.Load() {
		return append([]any{pgx.QueryExecModeExec}, st.Args...), nil
	}
	return st.Args, nil
}

// Conns implements sqlstore.Client.
func (c *client) Conns() int { return int(c.pool.Stat().MaxConns()) }

// Close leaves the pool open.
func (c *client) Close() error { return nil }
