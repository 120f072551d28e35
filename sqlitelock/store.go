package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the table; the default is "holdfast".
	Table string
}

// A Store keeps claims in a table of a file and wakes waiters. Make one with [New].
type Store struct {
	*leases
	file    *file
	pushing *sqlstore.Pushing
	close   func() error // closes what Open has made
}

// leases are claims in the rows of a table.
type leases = sqlstore.Store

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Checker   = (*Store)(nil)
)

// New returns a store in a table of db. Create makes the table. New does no I/O, and the
// store never closes db. opts may be nil. db must be a file opened with modernc.org/sqlite: a
// second SQLite in this process would undo the locks of the first.
//
// Set PRAGMA journal_mode = WAL on db; the setting stays with the file. With a rollback
// journal, locks are as safe, but each commit waits for the disk several times, and readers
// and writers block one another. At synchronous = FULL, locking and unlocking then takes
// three times as long, and thirty times as long as with WAL and NORMAL.
//
// A call takes a connection of db for the time of a statement. A waiter takes no connection
// of db: a single connection beside db looks for every waiter.
func New(db *sql.DB, opts *Options) (*Store, error) {
	f := &file{db: db}
	return newStore(f, newListener(f), opts)
}

func newStore(f *file, l *listener, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	client := &client{sqlstore.SQLite.Client(f.db), f}
	rows, err := sqlstore.New(client, sqlstore.SQLite, &sqlstore.Options{Table: opts.Table})
	if err != nil {
		return nil, err
	}
	return &Store{
		leases:  rows,
		file:    f,
		pushing: sqlstore.NewPushing(rows, l),
		close:   func() error { return nil },
	}, nil
}

// Acquire implements [driver.Store].
func (s *Store) Acquire(ctx context.Context, a driver.Ask) (driver.Grant, error) {
	return s.pushing.Acquire(ctx, a)
}

// Watch implements [driver.Watcher].
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	return s.pushing.Watch(ctx, c, wake)
}

// Renew implements [driver.Store].
func (s *Store) Renew(ctx context.Context, rs []driver.Renewal) []error {
	return gone(s.leases.Renew(ctx, rs))
}

// Release implements [driver.Store].
func (s *Store) Release(ctx context.Context, rs []driver.Release) []error {
	return gone(s.leases.Release(ctx, rs))
}

// gone marks the errors of claims in a removed or replaced file as lost.
func gone(errs []error) []error {
	for i, err := range errs {
		if errors.Is(err, errMoved) {
			errs[i] = fmt.Errorf("%w: %w", driver.ErrLost, err)
		}
	}
	return errs
}

// Create implements [driver.Creator]. Create makes the table and the view of the claims, unless
// they exist. Run Create once, as a user who may create tables.
func (s *Store) Create(ctx context.Context) error { return s.leases.Create(ctx) }

// Schema implements [driver.Creator].
func (s *Store) Schema() []string { return s.leases.Schema() }

// Close ends the connection that looks for changes. Claims stand until they expire.
func (s *Store) Close() error { return errors.Join(s.pushing.Close(), s.close()) }
