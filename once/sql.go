package once

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// SQL keeps records in a table of a PostgreSQL, MySQL, MariaDB, SQLite or SQL Server database. The
// database's clock decides when records expire. Set DB and Dialect. Create the table
// once, with [SQL.Create] or with the statements of [SQL.Schema].
//
// If the effect changes the same database, effect and record can commit together, with
// [Runner.DoTx] or [SQL.FinishTx]. Then no crash, pause or lost answer makes the effect run
// again after it has happened.
//
// For SQLite, set a busy timeout, so that a writer waits for other writers. Begin write
// transactions with BEGIN IMMEDIATE. For modernc.org/sqlite the settings are
// _pragma=busy_timeout(10000) and _txlock=immediate.
type SQL struct {
	// DB is the database. It must be set.
	DB *sql.DB

	// Dialect names the database engine. It must be set.
	Dialect dialect.Dialect

	// Table is the name of the table, default "holdfast_once": up to 48 letters, digits
	// and _. A schema and a dot may precede the name.
	Table string
}

var _ Records = (*SQL)(nil)

// Schema returns the statements that create the table if it is missing, for a
// migration.
func (s *SQL) Schema() ([]string, error) {
	st, err := compile(s.Dialect, cmp.Or(s.Table, "holdfast_once"))
	return st.create, err
}

// Create creates the table if it is missing. Create needs the right to create tables.
// All other methods need the rights to read, insert, update and delete in the table.
func (s *SQL) Create(ctx context.Context) error {
	st, err := s.statements()
	if err != nil {
		return err
	}
	for _, statement := range st.create {
		if _, err := s.DB.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("once: create the table: %w", err)
		}
	}
	return nil
}

// Load implements [Records].
func (s *SQL) Load(ctx context.Context, key string) (Record, error) {
	st, err := s.statements()
	if err != nil {
		return Record{}, err
	}
	return st.record(ctx, s.DB, st.load, key)
}

// record returns the record that a query finds.
func (st *statements) record(ctx context.Context, tx fence.Tx, query, key string) (Record, error) {
	var r Record
	var found int64
	err := tx.QueryRowContext(ctx, query, st.name(key)).Scan(&found, &r.State, &r.Token, &r.Fingerprint, &r.Result)
	if errors.Is(err, sql.ErrNoRows) {
		return Record{}, nil
	}
	if err == nil {
		err = newer.Check(key, found, rowFormat, newer.Stays)
	}
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// again is how often a statement is tried. A try fails if the record is neither there
// nor gone, because the record expires or begins at the same moment.
const again = 10

var errRestless = errors.New("the record has changed with each look")

// Begin implements [Records]. Every statement of Begin commits by itself.
func (s *SQL) Begin(ctx context.Context, key string, token uint64, fingerprint string, keep time.Duration) (Record, error) {
	st, err := s.statements()
	if err != nil {
		return Record{}, err
	}
	name, print, mine := st.name(key), []byte(fingerprint), Record{State: Begun, Token: token, Fingerprint: fingerprint}
	for range again {
		made, err := st.changes(ctx, s.DB, st.insert, name, token, print, keep.Microseconds())
		if err != nil {
			return Record{}, err
		}
		if made {
			s.sweep(ctx, st)
			return mine, nil
		}
		taken, err := st.changes(ctx, s.DB, st.take, token, print, keep.Microseconds(), name, token, print)
		if err != nil || taken {
			return mine, err
		}
		r, err := st.record(ctx, s.DB, st.load, key)
		if err != nil || r.State == Begun && r.Token == token && r.Fingerprint == fingerprint {
			return r, err
		}
		if r, changed, err := r.AfterBegin(key, token, fingerprint); !changed {
			return r, err
		}
	}
	return Record{}, errRestless
}

// sweep removes up to 16 expired records, in one out of eight calls that create a
// record. On average, sweep removes more records than are created.
func (s *SQL) sweep(ctx context.Context, st statements) {
	if rand.IntN(8) > 0 {
		return
	}
	rows, err := s.DB.QueryContext(ctx, st.over)
	if err != nil {
		return // A later call will sweep, and the caller's record is made.
	}
	var names [][]byte
	for rows.Next() {
		var name []byte
		if rows.Scan(&name) == nil {
			names = append(names, name)
		}
	}
	_ = rows.Close()
	// Delete one by one: callers that delete several rows at once may wait for each
	// other.
	for _, name := range names {
		if _, err := s.DB.ExecContext(ctx, st.remove, name); err != nil {
			return
		}
	}
}

// Finish implements [Records].
func (s *SQL) Finish(ctx context.Context, key string, token uint64, result []byte, keep time.Duration) error {
	return s.finish(ctx, s.DB, key, token, result, keep)
}

func (s *SQL) finish(ctx context.Context, tx fence.Tx, key string, token uint64, result []byte, keep time.Duration) error {
	st, err := s.statements()
	if err != nil {
		return err
	}
	for range again {
		done, err := st.changes(ctx, tx, st.finish, notNull(result), keep.Microseconds(), st.name(key), token)
		if err != nil || done {
			return err
		}
		r, err := st.record(ctx, tx, st.judge, key)
		if err != nil {
			return err
		}
		if _, changed, err := r.AfterFinish(key, token, result); !changed {
			return err
		}
	}
	return errRestless
}

// notNull returns b as a value that is not NULL. Some clients send nil as NULL.
func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Forget implements [Records].
func (s *SQL) Forget(ctx context.Context, key string, token uint64) error {
	st, err := s.statements()
	if err != nil {
		return err
	}
	freed, err := st.changes(ctx, s.DB, st.forget, token, st.name(key), token)
	if err != nil || freed {
		return err
	}
	r, err := st.record(ctx, s.DB, st.load, key)
	if err != nil {
		return err
	}
	_, _, err = r.AfterForget(key, token)
	return err
}

// changes reports whether a statement has changed its row. False may also mean that the
// row already had the new values.
func (st *statements) changes(ctx context.Context, tx fence.Tx, query string, args ...any) (bool, error) {
	for i, arg := range args {
		if token, ok := arg.(uint64); ok {
			args[i] = int64(token)
		}
	}
	if st.counted {
		var n int64
		err := tx.QueryRowContext(ctx, query, args...).Scan(&n)
		return n > 0, err
	}
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}

// statements returns the statements for the database.
func (s *SQL) statements() (statements, error) {
	if s.DB == nil {
		return statements{}, errors.New("once: SQL.DB is not set: open a database")
	}
	return compile(s.Dialect, cmp.Or(s.Table, "holdfast_once"))
}
