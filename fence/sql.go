package fence

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/internal/caller"
	"github.com/holdfast-go/holdfast/internal/carried"
	"github.com/holdfast-go/holdfast/internal/shown"
)

// A SQL keeps the highest token seen of each key in a table of the database with the
// guarded data. A SQL is only a description, and may be copied.
type SQL struct {
	// Table is the table's name, "holdfast_fences" unless set: up to 48 letters, digits and
	// _, optionally after a schema and a dot. The name is quoted, so upper and lower case
	// differ if the engine distinguishes them in quotes.
	Table string

	// Dialect is the engine of the database. Dialect must be set.
	Dialect dialect.Dialect
}

// A Tx is a transaction: a *sql.Tx, a *sql.Conn with an open transaction, or the equivalent
// of a library like GORM. A *sql.DB also fits, for a check before a read, outside of any
// transaction.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A Row is the result of a statement that returns one row.
type Row interface {
	Scan(dest ...any) error
}

// Schema returns the statements that create the table unless it exists, for a migration or
// for clients other than database/sql.
func (s SQL) Schema() ([]string, error) {
	st, err := s.statements()
	if err != nil {
		return nil, err
	}
	return []string{st.create}, nil
}

// Create creates the table unless it exists. Create needs the right to create tables;
// [SQL.Check] needs the rights to read, insert and update in this table.
//
// The table keeps a row for each key that was ever checked. If you delete a row, the next
// token of its key passes, whatever it is.
func (s SQL) Create(ctx context.Context, db *sql.DB) error {
	st, err := s.statements()
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, st.create); err != nil {
		return fmt.Errorf("fence: create the table: %w", err)
	}
	return nil
}

// Check rejects a token of a key, with an [OutdatedError], if a larger token has been seen.
// Otherwise Check remembers the token when tx commits, and keeps other checks of the key
// waiting until tx has ended: no larger token can come between the check and the writes of
// tx. Roll tx back after any error. In MySQL, check before the first SELECT of tx: later
// SELECTs see the snapshot of the first.
//
// The key has 1 to 512 bytes of UTF-8. It is usually the key of the lock, but may name the
// data that is written instead. The token is the result of [holdfast.Lock.Fence], which is
// 0 when the lock has ended or its store has no tokens; 0 is refused with an error. Check
// several keys of a transaction in sorted order, since two transactions that wait for each
// other fail with a deadlock.
//
// If ctx ends meanwhile, database/sql cancels the statement, and Check returns that error.
//
// [holdfast.Lock.Fence]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Lock.Fence
func (s SQL) Check(ctx context.Context, tx Tx, key string, token uint64) error {
	st, err := s.begin(key, token)
	if err != nil {
		return err
	}
	query, args := st.raise, []any{st.name(key), int64(token)}
	if st.read != "" {
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return failed(key, token, err)
		}
		query, args = st.read, args[:1]
	}
	return judge(key, token, tx.QueryRowContext(ctx, query, args...))
}

// Do runs write in a transaction that checks the fencing token of the innermost lock that
// ctx carries, and commits. Take ctx from [holdfast.Locker.Do] or [holdfast.Lock.Context].
//
// Do rolls back, and writes nothing, if the token is outdated ([OutdatedError]), if the
// lock or ctx ends before the commit, or if write panics or returns an error. The function
// write must return every error of its statements, and must neither commit nor roll back.
// Data read in the transaction needs no further check. If the commit fails because the
// connection broke, the outcome is unknown: read the data again.
//
// Do checks a single lock. Under several locks, such as the locks of a [holdfast.Group],
// begin the transaction yourself and call [SQL.Check] for every lock, in sorted order.
//
// [holdfast.Locker.Do]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Locker.Do
// [holdfast.Lock.Context]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Lock.Context
// [holdfast.Group]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Group
func (s SQL) Do(ctx context.Context, db *sql.DB, write func(tx *sql.Tx) error) error {
	key, token, err := carried.Token(ctx)
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("fence: begin a transaction under %s: %w", shown.Key(key), err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := s.Check(ctx, tx, key, token); err != nil {
		return err
	}
	if err := write(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		if ended := context.Cause(ctx); ended != nil {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return fmt.Errorf("fence: commit under %s: %w", shown.Key(key), err)
	}
	return nil
}

// CheckRow is [SQL.Check] for clients other than database/sql: query runs a statement in
// the client's transaction and returns its row. CheckRow works with Postgres and SQLite;
// MySQL, MariaDB and SQL Server need more than one statement.
func (s SQL) CheckRow(key string, token uint64, query func(query string, args ...any) Row) error {
	st, err := s.begin(key, token)
	if err != nil {
		return err
	}
	if st.read != "" {
		return fmt.Errorf("fence: %v needs two statements: use Check", s.Dialect)
	}
	return judge(key, token, query(st.raise, st.name(key), int64(token)))
}

func (s SQL) statements() (statements, error) {
	return compile(s.Dialect, cmp.Or(s.Table, "holdfast_fences"))
}

// begin checks the caller's arguments.
func (s SQL) begin(key string, token uint64) (statements, error) {
	if err := checkArguments(key, token); err != nil {
		return statements{}, err
	}
	return s.statements()
}

func checkArguments(key string, token uint64) error {
	if err := caller.CheckKey(key); err != nil {
		return fmt.Errorf("fence: check %.40q: %w", key, err)
	}
	switch {
	case token == 0:
		return fmt.Errorf("fence: check %s: the token is 0: the lock has ended, or its store has no tokens", shown.Key(key))
	case token > math.MaxInt64:
		return fmt.Errorf("fence: check %q: the token is %d, and no engine has integers beyond %d", key, token, math.MaxInt64)
	}
	return nil
}

// judge compares a token with the highest token, which the row holds.
func judge(key string, token uint64, row Row) error {
	var highest int64
	if err := row.Scan(&highest); err != nil {
		return failed(key, token, err)
	}
	if uint64(highest) > token {
		return &OutdatedError{Key: key, Token: token, Highest: uint64(highest)}
	}
	return nil
}

func failed(key string, token uint64, err error) error {
	return fmt.Errorf("fence: check token %d of %q: %w", token, key, err)
}
