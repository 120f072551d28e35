package sqllock

import (
	"context"
	"database/sql"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// DefaultTable is the table if [Options] name no table.
const DefaultTable = sqlstore.DefaultTable

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the name of the table, or schema.name, of letters, digits and _. The view
	// of the claims has the same name with _claims appended.
	Table string

	// Code returns the engine's code of an error. The default knows the clients pgx and
	// lib/pq, go-sql-driver/mysql, modernc.org/sqlite, and go-mssqldb.
	Code func(error) string
}

// A Store keeps claims in a table. Make one with [New].
type Store struct{ *leases }

type leases = sqlstore.Store

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// New returns a store in a table of db, which Create makes. New does no I/O, and never
// closes db. opts may be nil. A bad name of the table, and an unknown dialect, are
// [driver.ErrInvalid].
//
// A call needs one connection of db for the time of a statement; a waiter for a lock has
// no connection. If db limits its connections, leave one spare connection in addition to
// those of transactions that wait for a lock.
//
// A caller that gives up returns at once. In PostgreSQL and MySQL, a statement of Acquire
// that was already sent runs to its end without the caller, within a second of its start. So does
// every statement in SQL Server. In PostgreSQL a release may share a statement, which also runs to
// its end, and a shared statement runs on while one of its callers stays.
// The reason: clients break the connection of an interrupted statement. So that renewals
// need not wait, at most a hundred calls of Acquire are under way there at a time,
// including releases of claims that Acquire may have left behind. These calls leave one
// of db's connections to the rest. If db may have only one connection, all calls share
// the connection. Each store counts its own calls.
func New(db *sql.DB, d dialect.Dialect, opts *Options) (*Store, error) {
	engine, err := sqlstore.Engine(d)
	if err != nil {
		return nil, err
	}
	s, err := sqlstore.New(engine.Client(db), engine, (*sqlstore.Options)(opts))
	if err != nil {
		return nil, err
	}
	return &Store{s}, nil
}

// Create implements [driver.Creator]. Create makes the table and the view of the claims, unless
// they exist. Run Create once, as a user who may create tables.
func (s *Store) Create(ctx context.Context) error { return s.leases.Create(ctx) }

// Schema implements [driver.Creator].
func (s *Store) Schema() []string { return s.leases.Schema() }

// Check implements [driver.Checker]. An error that matches [driver.ErrInvalid] says that the
// table is missing or not readable for this user, or that the server is too old.
func (s *Store) Check(ctx context.Context) ([]string, error) { return s.leases.Check(ctx) }
