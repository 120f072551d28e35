package pglock

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/carried"
)

// A Querier is a pgx.Tx. For a check before reading, a *pgxpool.Pool or a *pgx.Conn will
// do.
type Querier interface {
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// CheckFence is [fence.SQL.Check] for pgx. The dialect of fences need not be set. To make
// the table, execute the statements that [fence.SQL.Schema] returns.
func CheckFence(ctx context.Context, tx Querier, fences fence.SQL, key string, token uint64) error {
	fences.Dialect = dialect.Postgres
	return fences.CheckRow(key, token, func(query string, args ...any) fence.Row {
		return tx.QueryRow(ctx, query, args...)
	})
}

// A Beginner is a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// DoFenced is [fence.SQL.Do] for pgx: it runs write in a transaction that checks the
// fencing token of the innermost lock that ctx carries, and commits. The dialect of
// fences need not be set.
func DoFenced(ctx context.Context, db Beginner, fences fence.SQL, write func(tx pgx.Tx) error) error {
	key, token, err := carried.Token(ctx)
	if err != nil {
		return fmt.Errorf("pglock: %w", err)
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := CheckFence(ctx, tx, fences, key, token); err != nil {
			return err
		}
		return write(tx)
	})
}
