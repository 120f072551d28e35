package register

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	_ "modernc.org/sqlite"             // the driver "sqlite"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/fileurl"
)

// Rows are registers in a database: a row for each register, with the records in a second
// table. For a fenced register, package fence checks the token in the transaction that
// writes.
type rows struct {
	db     *sql.DB
	fences fence.SQL
}

// most is the limit of connections for a process.
const most = 8

// Values and tokens are numbers below 1<<63.
var tables = []string{
	`CREATE TABLE registers (name varchar(64) NOT NULL PRIMARY KEY, value bigint NOT NULL, place bigint NOT NULL)`,
	`CREATE TABLE records (name varchar(64) NOT NULL, place bigint NOT NULL, token bigint NOT NULL, value bigint NOT NULL,
seen bigint NOT NULL, PRIMARY KEY (name, place))`,
}

func openRows(p Place) (*rows, error) {
	driver, source, engine, count := "pgx", p.At, dialect.Postgres, most
	switch p.Kind {
	case MySQL:
		u, err := url.Parse(p.At)
		if err != nil {
			return nil, err
		}
		c := mysql.NewConfig()
		c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
		c.Passwd, _ = u.User.Password()
		c.InterpolateParams = true // else each statement is prepared anew
		// A stopped process may hold the row, for some TTLs.
		c.Params = map[string]string{"innodb_lock_wait_timeout": "600"}
		driver, source, engine = "mysql", c.FormatDSN(), dialect.MySQL
	case SQLite:
		// There is one writer at a time, so more connections would only fight.
		driver, engine, count = "sqlite", dialect.SQLite, 1
		source = fileurl.Of("file", p.At) + "?" + url.Values{
			"_txlock": {"immediate"},
			"_pragma": {"busy_timeout(600000)", "journal_mode(wal)", "synchronous(off)"},
		}.Encode()
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(count)
	db.SetMaxIdleConns(count)
	return &rows{db, fence.SQL{Dialect: engine}}, nil
}

func (r *rows) Close() error { return r.db.Close() }

func (r *rows) Create(ctx context.Context, names []Name) error {
	if err := r.fences.Create(ctx, r.db); err != nil {
		return err
	}
	for _, table := range tables {
		if _, err := r.db.ExecContext(ctx, table); err != nil {
			return fmt.Errorf("create the table of registers: %w", err)
		}
	}
	for _, name := range names {
		if _, err := r.exec(ctx, r.db, `INSERT INTO registers (name, value, place) VALUES (?, 0, 0)`, name.String()); err != nil {
			return fmt.Errorf("create register %s: %w", name, err)
		}
	}
	return nil
}

func (r *rows) Read(ctx context.Context, name Name) (s State, err error) {
	s.Value, err = r.value(ctx, r.db, name)
	return s, err
}

func (r *rows) Append(ctx context.Context, name Name, rec Record) (s State, err error) {
	for {
		s, err = r.try(ctx, name, rec)
		var deadlock *mysql.MySQLError
		if !errors.As(err, &deadlock) || deadlock.Number != 1213 {
			break
		}
		// Nothing has happened, and the transaction has to run again.
	}
	if errors.Is(err, fence.ErrOutdated) {
		return State{Refused: true}, nil
	}
	return s, err
}

// try runs the check and the write in a single transaction.
func (r *rows) try(ctx context.Context, name Name, rec Record) (s State, err error) {
	tx, err := r.db.BeginTx(ctx, nil)
	if err != nil {
		return s, err
	}
	defer tx.Rollback() // a no-op after the commit
	if name.Fenced {
		if err := r.fences.Check(ctx, tx, name.Key, rec.Token); err != nil {
			return s, err
		}
	}
	if s.Value, err = r.write(ctx, tx, name, rec); err != nil {
		return s, fmt.Errorf("write register %s: %w", name, err)
	}
	return s, tx.Commit()
}

// write writes the row and its record, and returns the value.
func (r *rows) write(ctx context.Context, tx *sql.Tx, name Name, rec Record) (value uint64, err error) {
	change, args := `UPDATE registers SET place = place + 1 WHERE name = ?`, []any{name.String()}
	if rec.Value != 0 {
		change, args = `UPDATE registers SET place = place + 1, value = ? WHERE name = ?`, []any{int64(rec.Value), name.String()}
	}
	if _, err := r.exec(ctx, tx, change, args...); err != nil {
		return 0, err
	}
	_, err = r.exec(ctx, tx, `INSERT INTO records (name, place, token, value, seen)
VALUES (?, (SELECT place FROM registers WHERE name = ?), ?, ?, ?)`,
		name.String(), name.String(), int64(rec.Token), int64(rec.Value), int64(rec.Seen))
	if err != nil || rec.Value != 0 {
		return rec.Value, err
	}
	return r.value(ctx, tx, name)
}

func (r *rows) value(ctx context.Context, tx fence.Tx, name Name) (value uint64, err error) {
	err = tx.QueryRowContext(ctx, r.text(`SELECT value FROM registers WHERE name = ?`), name.String()).Scan(&value)
	return value, err
}

func (r *rows) Records(ctx context.Context, name Name) (all []Record, err error) {
	found, err := r.db.QueryContext(ctx, r.text(`SELECT token, value, seen FROM records WHERE name = ? ORDER BY place`), name.String())
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var one Record
		if err := found.Scan(&one.Token, &one.Value, &one.Seen); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, found.Err()
}

func (r *rows) exec(ctx context.Context, tx fence.Tx, text string, args ...any) (sql.Result, error) {
	return tx.ExecContext(ctx, r.text(text), args...)
}

// text returns a statement with the parameters in the style of the engine.
func (r *rows) text(text string) string {
	if r.fences.Dialect != dialect.Postgres {
		return text
	}
	for n := 1; strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", fmt.Sprintf("$%d", n), 1)
	}
	return text
}
