package pglock

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/fence"
)

// CheckFence is [fence.SQL.Check] for a transaction of pgx. The dialect of
// fences need not be set. A pgxpool.Pool makes the table with the statement that
// [fence.SQL.Schema] returns.
func CheckFence(ctx context.Context, tx pgx.Tx, fences fence.SQL, key string, token uint64) error {
	fences.Dialect = fence.Postgres
	return fences.CheckRow(key, token, func(query string, args ...any) fence.Row {
		return tx.QueryRow(ctx, query, args...)
	})
}
