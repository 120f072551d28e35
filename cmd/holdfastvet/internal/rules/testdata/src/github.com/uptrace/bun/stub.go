// Package bun has the signatures of the library.
package bun

import (
	"context"
	"database/sql"
)

type DB struct{ *sql.DB }

func (*DB) Begin() (Tx, error)                                              { return Tx{}, nil }
func (*DB) BeginTx(context.Context, *sql.TxOptions) (Tx, error)             { return Tx{}, nil }
func (*DB) ExecContext(context.Context, string, ...any) (sql.Result, error) { return nil, nil }
func (*DB) RunInTx(context.Context, *sql.TxOptions, func(context.Context, Tx) error) error {
	return nil
}

type Tx struct{ *sql.Tx }

func (Tx) Commit() error   { return nil }
func (Tx) Rollback() error { return nil }
