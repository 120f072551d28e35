package mssqllock

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the table, or schema.table; the default is "holdfast".
	Table string
}

// A Store keeps claims in a table. Make one with [New].
type Store struct {
	*leases
	sever    func()       // breaks the connections that Open has made
	close    func() error // closes what Open has made
	warnings []string     // of the URL
}

// leases are claims in the rows of a table.
type leases = sqlstore.Store

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// A waking is a Store that wakes waiters.
type waking struct {
	*Store
	rows *sqlstore.Ringing
}

var (
	_ driver.Store   = (*waking)(nil)
	_ driver.Watcher = (*waking)(nil)
)

func newWaking(s *Store, b sqlstore.Bell) *waking {
	return &waking{Store: s, rows: sqlstore.NewRinging(s.leases, b)}
}

// Acquire implements [driver.Store].
func (w *waking) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	return w.rows.Acquire(ctx, a)
}

// Watch implements [driver.Watcher].
func (w *waking) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	return w.rows.Watch(ctx, c, wake)
}

// Close implements [driver.Store].
func (w *waking) Close() error { return w.end(w.rows.Close) }

// New returns a store in a table of db, a database of the client go-mssqldb. Create creates
// the table. New does no I/O, and the store never closes db. opts may be nil. Waiters poll:
// only a store made from a URL has connections to wake waiters with.
//
// A call takes a connection for the time of a statement, which may last up to a second
// longer than the caller stays: see package sqllock. Callers that acquire locks or look at
// locks leave one connection free for renewals, if db may have several. Locks are lost if
// transactions, for example, occupy every connection of db for a TTL.
//
// If a failover is possible, give the connections of db a lifetime of some minutes
// (db.SetConnMaxLifetime).
func New(db *sql.DB, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	rows, err := sqlstore.New(sqlstore.SQLServer.Client(db), sqlstore.SQLServer, &sqlstore.Options{Table: opts.Table})
	if err != nil {
		return nil, err
	}
	return &Store{leases: rows, sever: func() {}, close: func() error { return nil }}, nil
}

// Create implements [driver.Creator]. Create makes the table and the view of the claims, unless
// they exist. Run Create once, as a user who may create tables.
func (s *Store) Create(ctx context.Context) error { return s.leases.Create(ctx) }

// Schema implements [driver.Creator].
func (s *Store) Schema() []string { return s.leases.Schema() }

// Close releases the resources of the store. Claims stand until they expire.
func (s *Store) Close() error { return s.end(s.leases.Close) }

// end closes the rows, and what Open has made.
func (s *Store) end(rows func() error) error {
	late := time.AfterFunc(closeLimit, s.sever)
	defer late.Stop()
	return errors.Join(rows(), s.close())
}

// Check implements [driver.Checker]. It adds a warning of a URL that may send a password
// unencrypted to the warnings of package sqllock.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	warnings, err := s.leases.Check(ctx)
	return append(slices.Clip(s.warnings), warnings...), err
}
