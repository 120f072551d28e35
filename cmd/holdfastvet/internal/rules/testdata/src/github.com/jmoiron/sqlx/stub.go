// Package sqlx has the signatures of the library.
package sqlx

import (
	"context"
	"database/sql"
)

type DB struct{ *sql.DB }

func (*DB) Beginx() (*Tx, error)                                  { return nil, nil }
func (*DB) BeginTxx(context.Context, *sql.TxOptions) (*Tx, error) { return nil, nil }
func (*DB) MustBegin() *Tx                                        { return nil }
func (*DB) MustExec(string, ...any) sql.Result                    { return nil }
func (*DB) Get(any, string, ...any) error                         { return nil }
func (*DB) GetContext(context.Context, any, string, ...any) error { return nil }
func (*DB) Select(any, string, ...any) error                      { return nil }

type Tx struct{ *sql.Tx }

func (*Tx) Get(any, string, ...any) error                         { return nil }
func (*Tx) GetContext(context.Context, any, string, ...any) error { return nil }

type Conn struct{ *sql.Conn }

func (*Conn) GetContext(context.Context, any, string, ...any) error { return nil }

func (*DB) Connx(context.Context) (*Conn, error) { return nil, nil }

func Connect(string, string) (*DB, error) { return nil, nil }
