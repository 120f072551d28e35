// Package pgx has the signatures of the library.
package pgx

import "context"

type Row interface{ Scan(...any) error }

type Rows interface{ Close() }

type CommandTag struct{}

type Tx interface {
	Exec(context.Context, string, ...any) (CommandTag, error)
	QueryRow(context.Context, string, ...any) Row
	Query(context.Context, string, ...any) (Rows, error)
	Commit(context.Context) error
	Rollback(context.Context) error
}

type Conn struct{}

type TxOptions struct{}

func (*Conn) BeginTx(context.Context, TxOptions) (Tx, error) { return nil, nil }

func (*Conn) Exec(context.Context, string, ...any) (CommandTag, error) { return CommandTag{}, nil }
func (*Conn) QueryRow(context.Context, string, ...any) Row             { return nil }
func (*Conn) Query(context.Context, string, ...any) (Rows, error)      { return nil, nil }
func (*Conn) Begin(context.Context) (Tx, error)                        { return nil, nil }

func BeginFunc(context.Context, *Conn, func(Tx) error) error { return nil }
