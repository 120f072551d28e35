package pglock

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/fence"
)

// A Querier is a pgx.Tx, or for a check before one reads a *pgxpool.Pool or a
// *pgx.Conn.
type Querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// CheckFence is [fence.SQL.Check] for pgx. The dialect of fences need not be set.
// To make the table, execute the statement that [fence.SQL.Schema] returns.
func CheckFence(ctx context.Context, tx Querier, fences fence.SQL, key string, token uint64) error {
	fences.Dialect = fence.Postgres
	return fences.CheckRow(key, token, func(query string, args ...any) fence.Row {
		return tx.QueryRow(ctx, query, args...)
	})
}
