package mysqllock

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
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
	close func() error // what Open has made
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// New returns a store in a table of db, a database of this package's client
// go-sql-driver/mysql, which [sqllock.Store.Create] makes. It does no I/O, and
// never closes db. opts may be nil.
//
// A call takes a connection for the time of a statement, which may be up to a second
// longer than its caller stays: see [sqllock.New]. Renewals need one, too. Those who ask
// for locks leave them one, if db may have several. Locks are lost if others, such as
// transactions, keep all that db may have for a TTL.
//
// Where another server may take over, open db with rejectReadOnly=true in its DSN,
// and give its connections a lifetime of some minutes (db.SetConnMaxLifetime).
// Otherwise they stay with a primary that was made read-only but still runs. With
// innodb_lock_wait_timeout=1 there, too, the server soon ends the statements of callers
// who have given up the wait for a row that somebody has locked, and their connections.
// That holds for your transactions on db as well: see [LockTx].
func New(db *sql.DB, opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	return &Store{
		Store: sqllock.New(db, sqllock.MySQL, &sqllock.Options{Table: opts.Table, Code: code}),
		close: func() error { return nil },
	}
}

// Close gives back what the store holds of its own. Claims stand until they run
// out.
func (s *Store) Close() error { return errors.Join(s.Store.Close(), s.close()) }

// code is the number of an error of the server. RejectReadOnly hides it; that a
// new connection fails before anything was sent has hardly another reason.
func code(err error) string {
	if errors.Is(err, sqldriver.ErrBadConn) {
		return strconv.Itoa(readOnlyMode)
	}
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) {
		return strconv.Itoa(int(e.Number))
	}
	return ""
}
