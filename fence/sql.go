package fence

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/holdfast-go/holdfast/driver"
)

// A SQL keeps the highest token that it has seen of each key in a table of the
// database that holds what the locks guard. It is a description only, and may be
// copied.
type SQL struct {
	// Table is the table's name, "holdfast_fences" unless set: up to 48 letters,
	// digits and _, and before it, if it has one, its schema and a dot. It is
	// quoted, so that upper and lower case differ where they do in quotes.
	Table string

	// Dialect says which engine it is. It must be set.
	Dialect Dialect
}

// A Tx is a transaction: a *sql.Tx, a *sql.Conn with one in it, or what a library
// like GORM makes of one. A *sql.DB fits too, for a check before one reads, which
// is not part of a transaction.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// A Row is the result of a statement that returns one row.
type Row interface {
	Scan(dest ...any) error
}

// Schema returns the statement that makes the table unless it is there, for a
// migration or for another client than database/sql.
func (s SQL) Schema() (string, error) {
	st, err := s.statements()
	return st.create, err
}

// Create makes the table unless it is there. It needs the right to make tables,
// [SQL.Check] that to read, insert and update in this one.
//
// A row stays for each key that was ever checked. Who deletes one lets any token
// of that key pass next.
func (s SQL) Create(ctx context.Context, db *sql.DB) error {
	statement, err := s.Schema()
	if err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("fence: create the table: %w", err)
	}
	return nil
}

// Check refuses a token of a key, with an [OutdatedError], if a larger one has
// been seen. Otherwise it remembers the token when tx commits, and keeps others
// that check the key waiting until tx has ended: no larger token can come between
// the check and the writes of tx. Roll tx back after any error. In MySQL, check
// before the first SELECT of tx: later ones see what that one saw.
//
// The key has 1 to 512 bytes of UTF-8; it is usually that of the lock, but may
// name what is written. The token is that of [holdfast.Lock.Fence], which is 0
// when the lock has ended or its store has no tokens; 0 is refused with an error.
// Check several keys of one transaction in sorted order, since two transactions
// that wait for each other fail with a deadlock.
//
// If ctx ends meanwhile, database/sql gives up the statement, and its error is
// returned.
//
// [holdfast.Lock.Fence]: https://pkg.go.dev/github.com/holdfast-go/holdfast#Lock.Fence
func (s SQL) Check(ctx context.Context, tx Tx, key string, token uint64) error {
	st, err := s.begin(key, token)
	if err != nil {
		return err
	}
	query, args := st.raise, []any{[]byte(key), int64(token)}
	if st.read != "" {
		if _, err := tx.ExecContext(ctx, query, args...); err != nil {
			return failed(key, token, err)
		}
		query, args = st.read, args[:1]
	}
	return judge(key, token, tx.QueryRowContext(ctx, query, args...))
}

// CheckRow is [SQL.Check] for clients other than database/sql: query runs a
// statement in their transaction and returns its row. It serves Postgres and
// SQLite; the others need more than one statement.
func (s SQL) CheckRow(key string, token uint64, query func(query string, args ...any) Row) error {
	st, err := s.begin(key, token)
	if err != nil {
		return err
	}
	if st.read != "" {
		return fmt.Errorf("fence: %v needs two statements: use Check", s.Dialect)
	}
	return judge(key, token, query(st.raise, []byte(key), int64(token)))
}

func (s SQL) statements() (statements, error) {
	return s.Dialect.compile(cmp.Or(s.Table, "holdfast_fences"))
}

// begin checks what the caller gives.
func (s SQL) begin(key string, token uint64) (statements, error) {
	if err := checkArguments(key, token); err != nil {
		return statements{}, err
	}
	return s.statements()
}

func checkArguments(key string, token uint64) error {
	if err := driver.CheckKey(key); err != nil {
		return fmt.Errorf("fence: check %.40q: %w", key, err)
	}
	switch {
	case token == 0:
		return fmt.Errorf("fence: check %q: the token is 0: the lock has ended, or its store has no tokens", key)
	case token > math.MaxInt64:
		return fmt.Errorf("fence: check %q: the token is %d, and no engine has integers beyond %d", key, token, math.MaxInt64)
	}
	return nil
}

// judge compares a token with the highest, which the row has.
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
