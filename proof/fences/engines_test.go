package fences

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/microsoft/go-mssqldb"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/servers"
)

var (
	postgres *servers.Postgres
	mariadb  *servers.MariaDB
)

func TestMain(m *testing.M) {
	// These tests wait for servers most of the time, not for the processor.
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(servers.Main(m, func(tb servers.TB) {
		postgres, mariadb = servers.AnyPostgres(tb, "fsync = off"), servers.AnyMariaDB(tb, "innodb_flush_method = nosync")
	}))
}

// An engine is a database with a table of fences in it.
type engine struct {
	*testing.T
	db     *sql.DB
	fences fence.SQL
	at     string // the URL of the database, of SQL Server only
}

// each runs a test on every engine.
func each(t *testing.T, test func(e *engine)) {
	for _, dialect := range []dialect.Dialect{dialect.Postgres, dialect.MySQL, dialect.SQLite, dialect.SQLServer} {
		t.Run(dialect.String(), func(t *testing.T) {
			t.Parallel()
			test(start(t, dialect))
		})
	}
}

func start(t *testing.T, dialect dialect.Dialect) *engine {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	e := &engine{T: t, fences: fence.SQL{Table: "of_" + test + "_" + rand.Text()[:8], Dialect: dialect}}
	if dialect == sqlServer {
		e.at = servers.AnySQLServer(t)
	}
	e.db = e.open(e.addr())
	e.db.SetMaxOpenConns(8)
	e.must(e.fences.Create(t.Context(), e.db))
	return e
}

const sqlServer = dialect.SQLServer

// addr is that of the server, if there is one.
func (e *engine) addr() string {
	switch e.fences.Dialect {
	case dialect.Postgres:
		return postgres.Addr()
	case dialect.MySQL:
		return mariadb.Addr()
	case dialect.SQLServer:
		return e.parse(e.at).Host
	}
	return ""
}

// open opens the database of the server, as it is reached at an address, with the
// settings that a client has by default.
func (e *engine) open(addr string) *sql.DB {
	e.Helper()
	var driver, source string
	switch e.fences.Dialect {
	case dialect.Postgres:
		u := e.parse(postgres.URL())
		u.Host = addr
		driver, source = "pgx", u.String()
	case dialect.MySQL:
		u := e.parse(mariadb.URL())
		config := mysql.NewConfig()
		config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", addr, strings.TrimPrefix(u.Path, "/")
		config.Passwd, _ = u.User.Password()
		config.Logger = &mysql.NopLogger{}
		driver, source = "mysql", config.FormatDSN()
	case dialect.SQLServer:
		u := e.parse(e.at)
		u.Host = addr
		driver, source = "sqlserver", u.String()
	case dialect.SQLite:
		driver = "sqlite"
		// Like the servers, it does not wait for the disk: eight writers get their turn in time.
		source = "file:" + filepath.Join(e.TempDir(), "db") + "?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"
	}
	db, err := sql.Open(driver, source)
	e.must(err)
	e.Cleanup(func() { db.Close() })
	return db
}

func (e *engine) parse(at string) *url.URL {
	e.Helper()
	u, err := url.Parse(at)
	e.must(err)
	return u
}

func (e *engine) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// quoted returns the name of the table for statements.
func (e *engine) quoted() string {
	if e.fences.Dialect == dialect.MySQL {
		return "`" + e.fences.Table + "`"
	}
	return `"` + e.fences.Table + `"`
}

// begin begins a transaction with a context that does not end, because go-mssqldb 1.11.2 has a data
// race if the context ends before the transaction (its issue 390).
func (e *engine) begin() *sql.Tx {
	e.Helper()
	tx, err := e.db.BeginTx(context.WithoutCancel(e.Context()), nil)
	e.must(err)
	e.Cleanup(func() { tx.Rollback() })
	return tx
}

// check checks a token in a transaction of its own, which commits if it passes.
func (e *engine) check(ctx context.Context, key string, token uint64, writes ...string) error {
	tx, err := e.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := e.fences.Check(ctx, tx, key, token); err != nil {
		return err
	}
	for _, write := range writes {
		if _, err := tx.ExecContext(ctx, write); err != nil {
			return err
		}
	}
	return tx.Commit()
}
