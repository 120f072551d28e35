// Package pgxpool has the signatures of the library.
package pgxpool

import (
	"context"

	"github.com/jackc/pgx/v5"
)

type Pool struct{}

func (*Pool) Exec(context.Context, string, ...any) (pgx.CommandTag, error) {
	return pgx.CommandTag{}, nil
}
func (*Pool) QueryRow(context.Context, string, ...any) pgx.Row        { return nil }
func (*Pool) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, nil }
func (*Pool) Begin(context.Context) (pgx.Tx, error)                   { return nil, nil }
func (*Pool) BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error)  { return nil, nil }
func (*Pool) Acquire(context.Context) (*Conn, error)                  { return nil, nil }

type Conn struct{}

func (*Conn) Exec(context.Context, string, ...any) (pgx.CommandTag, error) {
	return pgx.CommandTag{}, nil
}
func (*Conn) QueryRow(context.Context, string, ...any) pgx.Row        { return nil }
func (*Conn) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, nil }
func (*Conn) Begin(context.Context) (pgx.Tx, error)                   { return nil, nil }
func (*Conn) Release()                                                {}
