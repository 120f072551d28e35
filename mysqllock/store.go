package mysqllock

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"slices"
	"strconv"

	"github.com/go-sql-driver/mysql"

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
	w := &waking{Store: s, rows: sqlstore.NewRinging(s.leases, b)}
	return w
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
func (w *waking) Close() error { return errors.Join(w.rows.Close(), w.close()) }

// New returns a store in a table of db, a database of the client go-sql-driver/mysql.
// Create creates the table. New does no I/O, and the store never closes db. opts may be nil.
// Waiters poll: only a store made from a URL has connections to wake waiters with.
//
// A call takes a connection for the time of a statement, which may last up to a second
// longer than the caller stays: see package sqllock. Renewals need a connection, too. Callers
// that acquire locks leave one connection free for renewals, if db may have several. Locks
// are lost if transactions, for example, occupy every connection of db for a TTL.
//
// If a failover is possible, open db with rejectReadOnly=true in its DSN, and give its
// connections a lifetime of some minutes (db.SetConnMaxLifetime). Otherwise the connections
// stay with a primary that was made read-only but still runs. Set
// innodb_lock_wait_timeout=1 and lock_wait_timeout=1 there, too: the server then soon ends
// the statements and connections of callers who have given up the wait for a locked row or
// table. In MariaDB, set innodb_lock_wait_timeout=0 if many processes wait for one key: a
// statement then fails at once, and is sent again. The settings also hold for your transactions
// on db: see [LockTx].
func New(db *sql.DB, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	rows, err := sqlstore.New(sqlstore.MySQL.Client(db), sqlstore.MySQL, &sqlstore.Options{Table: opts.Table, Code: code})
	if err != nil {
		return nil, err
	}
	return &Store{leases: rows, close: func() error { return nil }}, nil
}

// Create implements [driver.Creator]. Create makes the table and the view of the claims, unless
// they exist. Run Create once, as a user who may create tables.
func (s *Store) Create(ctx context.Context) error { return s.leases.Create(ctx) }

// Schema implements [driver.Creator].
func (s *Store) Schema() []string { return s.leases.Schema() }

// Close releases the resources of the store. Claims stand until they expire.
func (s *Store) Close() error { return errors.Join(s.leases.Close(), s.close()) }

// Check implements [driver.Checker]. It adds a warning of a URL that may send a password
// unencrypted to the warnings of package sqllock.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	warnings, err := s.leases.Check(ctx)
	return append(slices.Clip(s.warnings), warnings...), err
}

// code is the number of an error of the server. RejectReadOnly hides the number; a new
// connection that fails before anything was sent hardly ever has another reason.
func code(err error) string {
	if errors.Is(err, sqldriver.ErrBadConn) {
		return strconv.Itoa(readOnlyMode)
	}
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		return strconv.Itoa(int(e.Number))
	}
	return ""
}
