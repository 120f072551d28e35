// Package gorm has the signatures of the library.
package gorm

type DB struct{}

func (*DB) Transaction(func(tx *DB) error) error { return nil }
func (*DB) Begin() *DB                           { return nil }
func (*DB) Commit() *DB                          { return nil }
func (*DB) Exec(string, ...any) *DB              { return nil }
