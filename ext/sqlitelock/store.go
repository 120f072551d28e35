package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/sqllock"
)

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the table; the default is sqllock.DefaultTable.
	Table string
}

// A Store keeps claims in a table of a file and wakes claims in line. Make one
// with [New].
type Store struct {
	*sqllock.Store
	file    *file
	pushing *sqllock.Pushing
	close   func() error // what Open has made
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a store in a table of db, which [sqllock.Store.Create] makes. It
// does no I/O, and never closes db. opts may be nil. db must be a file, opened
// with modernc.org/sqlite, since another SQLite in this process would undo the
// locks of this one.
//
// db wants a write-ahead log: PRAGMA journal_mode = WAL, which stays with the
// file. With a rollback journal locks are as safe, but each commit waits for the
// disk several times, and those who read and those who write are in each other's
// way. To lock and unlock takes three times as long then at synchronous = FULL, and
// thirty times as long as with WAL and NORMAL.
//
// A call takes a connection of db for the time of a statement. Whoever waits
// for a lock has none of db: one connection beside it looks for all.
func New(db *sql.DB, opts *Options) *Store {
	f := &file{db: db}
	return newStore(f, newListener(f), opts)
}

func newStore(f *file, l *listener, opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	client := &client{sqllock.SQLite.Client(f.db), f}
	rows := sqllock.NewClient(client, sqllock.SQLite, &sqllock.Options{Table: opts.Table})
	return &Store{
		Store:   rows,
		file:    f,
		pushing: rows.Pushing(l),
		close:   func() error { return nil },
	}
}

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.pushing.Acquire(ctx, c)
}

// Watch implements [driver.Watcher].
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	return s.pushing.Watch(ctx, c, wake)
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, cs []driver.Claim) []error {
	return gone(s.Store.Renew(ctx, cs))
}

// Release implements [driver.Store].
func (s *Store) Release(ctx context.Context, cs []driver.Claim) []error {
	return gone(s.Store.Release(ctx, cs))
}

// gone says of claims in a file that is gone that they are.
func gone(errs []error) []error {
	for i, err := range errs {
		if errors.Is(err, errMoved) {
			errs[i] = fmt.Errorf("%w: %w", driver.ErrLost, err)
		}
	}
	return errs
}

// Close ends the connection that looks. Claims stand until they run out.
func (s *Store) Close() error { return errors.Join(s.pushing.Close(), s.close()) }
