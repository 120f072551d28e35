// Package gorm has the signatures of the library.
package gorm

import "context"

type DB struct{ Error error }

func (*DB) Transaction(func(tx *DB) error) error { return nil }
func (*DB) Begin() *DB                           { return nil }
func (*DB) Commit() *DB                          { return nil }
func (*DB) Rollback() *DB                        { return nil }
func (*DB) Raw(string, ...any) *DB               { return nil }
func (*DB) Scan(any) *DB                         { return nil }
func (*DB) WithContext(context.Context) *DB      { return nil }
func (*DB) Exec(string, ...any) *DB              { return nil }
