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
	"github.com/holdfast-go/holdfast/sqllock"
)

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the table, or schema.table; the default is sqllock.DefaultTable.
	Table string
}

// A Store keeps claims in a table. Make one with [New].
type Store struct {
	*sqllock.Store
	close    func() error // closes what Open has made
	warnings []string     // of the URL
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// New returns a store in a table of db, a database of the client go-sql-driver/mysql.
// [sqllock.Store.Create] creates the table. New does no I/O, and the store never closes db.
// opts may be nil.
//
// A call takes a connection for the time of a statement, which may last up to a second
// longer than the caller stays: see [sqllock.New]. Renewals need a connection, too. Callers
// that acquire locks leave one connection free for renewals, if db may have several. Locks
// are lost if transactions, for example, occupy every connection of db for a TTL.
//
// If a failover is possible, open db with rejectReadOnly=true in its DSN, and give its
// connections a lifetime of some minutes (db.SetConnMaxLifetime). Otherwise the connections
// stay with a primary that was made read-only but still runs. Set
// innodb_lock_wait_timeout=1 there, too: the server then soon ends the statements and
// connections of callers who have given up the wait for a locked row. The setting also
// holds for your transactions on db: see [LockTx].
func New(db *sql.DB, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	rows, err := sqllock.New(db, sqllock.MySQL, &sqllock.Options{Table: opts.Table, Code: code})
	if err != nil {
		return nil, err
	}
	return &Store{Store: rows, close: func() error { return nil }}, nil
}

// Close releases the resources of the store. Claims stand until they expire.
func (s *Store) Close() error { return errors.Join(s.Store.Close(), s.close()) }

// Check implements [driver.Checker]. It adds a warning of a URL that may send a password
// unencrypted to the warnings of [sqllock.Store.Check].
func (s *Store) Check(ctx context.Context) ([]string, error) {
	warnings, err := s.Store.Check(ctx)
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
