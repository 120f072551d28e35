package pglock

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/sqllock"
)

// A client runs statements on a pool, which prepares them by itself.
type client struct{ pool *pgxpool.Pool }

var _ sqllock.Client = client{}

func (c client) Query(ctx context.Context, st sqllock.Statement, each func(sqllock.Scan) error) error {
	rows, err := c.pool.Query(ctx, st.Text, arguments(st)...)
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

func (c client) Exec(ctx context.Context, st sqllock.Statement) (sqllock.Result, error) {
	tag, err := c.pool.Exec(ctx, st.Text, arguments(st)...)
	return sqllock.Result{Rows: tag.RowsAffected()}, err
}

// arguments has a statement that will hardly come again leave no trace.
func arguments(st sqllock.Statement) []any {
	if st.Once {
		return append([]any{pgx.QueryExecModeExec}, st.Args...)
	}
	return st.Args
}

// Close leaves the pool open.
func (c client) Close() error { return nil }
