// Package pg has the signatures of the library.
package pg

type Result interface{ RowsAffected() int }

type baseDB struct{}

func (*baseDB) Exec(query any, params ...any) (Result, error) { return nil, nil }

type DB struct{ *baseDB }

type Conn struct{ baseDB }
