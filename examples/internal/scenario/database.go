// Package scenario is shared by the examples registration and withdrawal. A Database is
// one of either engine, and a Play is a workload of several processes, which compares
// the ways to guard data.
package scenario

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/mysqllock"
	"github.com/holdfast-go/holdfast/pglock"
)

// A Database is a database of Postgres, MySQL or MariaDB, with fences, and with locks
// in it or in another store.
type Database struct {
	*sql.DB
	Locks  *holdfast.Locker
	Fences fence.SQL

	store driver.Store // in the database
	pool  *pgxpool.Pool
}

// Connect opens the database of a URL, with up to conns connections. If the URL of the
// store is empty, the locks are in the database. The program imports the other stores that it
// takes. The locks of a process that has died expire after ttl, the default of holdfast if 0.
func Connect(ctx context.Context, at, store string, ttl time.Duration, conns int) (*Database, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, errors.New("-db is not a URL") // the text may have a password
	}
	d := &Database{}
	switch u.Scheme {
	case "postgres", "postgresql":
		config, err := pgxpool.ParseConfig(at)
		if err != nil {
			return nil, err
		}
		config.MaxConns = int32(conns)
		if d.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
			return nil, err
		}
		d.DB = stdlib.OpenDBFromPool(d.pool)
		if d.store, err = pglock.New(d.pool, nil); err != nil {
			return nil, errors.Join(err, d.closeDB())
		}
		d.Fences.Dialect = dialect.Postgres
	case "mysql", "mariadb":
		config := mysql.NewConfig()
		config.Net, config.Addr = "tcp", net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "3306"))
		config.User, config.DBName = u.User.Username(), strings.TrimPrefix(u.Path, "/")
		config.Passwd, _ = u.User.Password()
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return nil, err
		}
		d.DB = sql.OpenDB(connector)
		if d.store, err = mysqllock.New(d.DB, nil); err != nil {
			return nil, errors.Join(err, d.closeDB())
		}
		d.Fences.Dialect = dialect.MySQL
	default:
		return nil, fmt.Errorf("-db has the scheme %q, want postgres, mysql or mariadb", u.Scheme)
	}
	d.SetMaxOpenConns(conns)
	d.SetMaxIdleConns(conns)
	opts := &holdfast.Options{TTL: ttl}
	if store == "" {
		d.Locks, err = holdfast.New(d.store, opts)
	} else {
		d.Locks, err = holdfast.Open(ctx, store, opts)
	}
	if err != nil {
		return nil, errors.Join(err, d.closeDB())
	}
	return d, nil
}

// Create makes the missing tables of the locks and fences, and executes the statements.
func (d *Database) Create(ctx context.Context, statements ...string) error {
	err := errors.Join(d.store.(driver.Creator).Create(ctx), d.Fences.Create(ctx, d.DB))
	if d.Fences.Dialect == dialect.MySQL {
		err = errors.Join(err, mysqllock.CreateTxLocks(ctx, d.DB))
	}
	for _, statement := range statements {
		_, failed := d.Exec(ctx, d, statement)
		err = errors.Join(err, failed)
	}
	return err
}

// Close gives back what Connect has opened.
func (d *Database) Close() error { return errors.Join(d.Locks.Close(), d.closeDB()) }

func (d *Database) closeDB() error {
	err := d.DB.Close()
	if d.pool != nil {
		d.pool.Close()
	}
	return err
}

// A Querier is a Database or a transaction.
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Row queries one row. Placeholders are written as ? for either engine.
func (d *Database) Row(ctx context.Context, on Querier, query string, args ...any) *sql.Row {
	return on.QueryRowContext(ctx, d.bind(query), args...)
}

// Exec executes a statement and returns the number of changed rows.
func (d *Database) Exec(ctx context.Context, on Querier, query string, args ...any) (int64, error) {
	done, err := on.ExecContext(ctx, d.bind(query), args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// bind numbers the placeholders for Postgres.
func (d *Database) bind(query string) string {
	if d.Fences.Dialect == dialect.MySQL {
		return query
	}
	parts := strings.Split(query, "?")
	var b strings.Builder
	for i, part := range parts[:len(parts)-1] {
		fmt.Fprintf(&b, "%s$%d", part, i+1)
	}
	return b.String() + parts[len(parts)-1]
}

// Tx runs fn in a transaction and commits.
func (d *Database) Tx(ctx context.Context, fn func(tx *sql.Tx) error) error {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// LockTx locks a key until the transaction ends.
func (d *Database) LockTx(ctx context.Context, tx *sql.Tx, key string) error {
	if d.Fences.Dialect == dialect.MySQL {
		return mysqllock.LockTx(ctx, tx, key)
	}
	return pglock.LockSQLTx(ctx, tx, key)
}

// InsertNew returns the clause by which an INSERT changes nothing if a unique index has
// the row already.
func (d *Database) InsertNew(column string) string {
	if d.Fences.Dialect == dialect.MySQL {
		return ` ON DUPLICATE KEY UPDATE ` + column + ` = ` + column
	}
	return ` ON CONFLICT DO NOTHING`
}

// IsDuplicate reports whether a unique index has refused a row.
func IsDuplicate(err error) bool { return hasCode(err, "23505", 1062) }

func isDeadlock(err error) bool { return hasCode(err, "40P01", 1213) }

// IsLate reports whether a lock was not granted because the store did not answer in time.
func IsLate(err error) bool {
	var refused *holdfast.Error
	return errors.As(err, &refused) && refused.Op == "lock" && errors.Is(refused, os.ErrDeadlineExceeded)
}

func hasCode(err error, postgres string, maria uint16) bool {
	var p *pgconn.PgError
	var m *mysql.MySQLError
	return errors.As(err, &p) && p.Code == postgres || errors.As(err, &m) && m.Number == maria
}
