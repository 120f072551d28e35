package leases

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/asks"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/mysqllock"
	"github.com/holdfast-go/holdfast/pglock"
	"github.com/holdfast-go/holdfast/sqllock"
)

// contract runs the whole contract, each rule in a table of its own. That takes minutes:
// with -short a store only follows the model.
func contract(t *testing.T, lacks drivertest.Feature, open func(t testing.TB, table string) store) {
	if testing.Short() {
		s := open(t, "t_short")
		succeed(t, s.Create(t.Context()))
		follow(t, s, 1, 60)
		return
	}
	tables := make(chan map[testing.TB]string, 1)
	tables <- make(map[testing.TB]string)
	drivertest.Run(t, drivertest.Harness{Lacks: lacks, Open: func(t testing.TB) driver.Store {
		names := <-tables
		name, ok := names[t]
		if !ok {
			name = "t_" + strings.ToLower(rand.Text())
			names[t] = name
		}
		tables <- names
		s := open(t, name)
		if !ok {
			succeed(t, s.Create(t.Context()))
		}
		return s
	}})
}

// database makes a database on a server of Postgres and returns its URL.
func database(t *testing.T, s server, name, options string, settings ...string) string {
	t.Helper()
	name = unique(t, s, name, "DROP DATABASE %[1]s WITH (FORCE)")
	s.Must(fmt.Sprintf("CREATE DATABASE %s %s", name, options))
	for _, setting := range settings {
		s.Must(fmt.Sprintf("ALTER DATABASE %s SET %s", name, setting))
	}
	return within(s.URL(), name)
}

// A database of Postgres with all the settings that others might like.
func TestPostgresSettings(t *testing.T) {
	t.Parallel()
	at := database(t, postgres.shared, "odd", "",
		"default_transaction_isolation = 'serializable'",
		"standard_conforming_strings = off", "backslash_quote = on", "escape_string_warning = off",
		"datestyle = 'German, DMY'", "intervalstyle = 'iso_8601'", "timezone = 'Europe/Berlin'",
		"bytea_output = 'escape'", "extra_float_digits = -15", "row_security = off",
		"transform_null_equals = on", "quote_all_identifiers = on", "enable_indexscan = off",
		"search_path = 'nowhere'")
	db, err := sql.Open("pgx", at)
	succeed(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `CREATE SCHEMA "Odd"`)
	succeed(t, err)
	contract(t, 0, func(t testing.TB, table string) store { return open(t, with(at, "table", "Odd."+table)) })
}

// steps is how far a client follows the model.
func steps() int {
	if testing.Short() {
		return 15
	}
	return 40
}

// The same by the clients that users bring, in whichever way they execute.
func TestPostgresClients(t *testing.T) {
	t.Parallel()
	at := database(t, postgres.shared, "clients", "", "default_transaction_isolation = 'repeatable read'")
	s := open(t, at)
	succeed(t, s.Create(t.Context()))
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		config, err := pgxpool.ParseConfig(at)
		succeed(t, err)
		config.ConnConfig.DefaultQueryExecMode = mode
		config.MaxConns = 1
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		succeed(t, err)
		defer pool.Close()
		s := must.Get(pglock.New(pool, nil))
		defer s.Close()
		follow(t, s, uint64(mode), steps())
		db := stdlib.OpenDBFromPool(pool)
		defer db.Close()
		follow(t, must.Get(sqllock.New(db, dialect.Postgres, nil)), uint64(mode), steps())
	}
}

// A text that the database cannot store is refused for good.
func TestPostgresEncoding(t *testing.T) {
	t.Parallel()
	s := open(t, database(t, postgres.shared, "latin", "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"))
	succeed(t, s.Create(t.Context()))
	g, err := s.Acquire(t.Context(), exclusive("schlüssel", "id"))
	if err != nil || !g.OK {
		t.Errorf("a key with letters that the encoding has: %+v, %v", g, err)
	}
	_, err = s.Acquire(t.Context(), exclusive("🔑", "id"))
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("a key with others: %v; want an ErrInvalid that says UTF-8", err)
	}
}

// dataSource is what a client of database/sql wants instead of a URL.
func dataSource(at string) string {
	u, err := url.Parse(without(without(at, "table"), "mode"))
	if err != nil {
		panic(err)
	}
	if u.Scheme != "mysql" {
		return u.String()
	}
	password, _ := u.User.Password()
	return fmt.Sprintf("%s:%s@tcp(%s)%s?%s", u.User.Username(), password, u.Host, u.Path, u.RawQuery)
}

// source is a database of MySQL for a client with its own parameters.
func source(t *testing.T, at, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dataSource(at)+params)
	succeed(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// asking is what a store lacks whose waiters have to ask.
const asking = drivertest.Watch | drivertest.Notify

// A server of MariaDB with all the settings that others might like.
func TestMariaDBSettings(t *testing.T) {
	t.Parallel()
	s := mariadb.start(t, "transaction_isolation = SERIALIZABLE", "autocommit = 0", "lower_case_table_names = 1",
		"sql_mode = ANSI,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,NO_ZERO_IN_DATE,SIMULTANEOUS_ASSIGNMENT",
		"default_time_zone = '-03:30'", "character_set_server = latin1", "collation_server = latin1_swedish_ci",
		"innodb_lock_wait_timeout = 1", "innodb_rollback_on_timeout = 1", "binlog_format = STATEMENT", "log_bin = log", "server_id = 1")
	s.Must("CREATE DATABASE Odd; COMMIT")
	contract(t, drivertest.Notify, func(t testing.TB, table string) store { return open(t, with(s.URL(), "table", "Odd."+table)) })
}

// The same by the clients that users bring.
func TestMariaDBClients(t *testing.T) {
	t.Parallel()
	at := mariadb.shared.URL()
	for i, params := range []string{
		"",
		"interpolateParams=true",
		"clientFoundRows=true",
		"clientFoundRows=true&interpolateParams=true&sql_mode=%27NO_BACKSLASH_ESCAPES%27",
		"parseTime=true&loc=Europe%2FBerlin&time_zone=%27%2B02%3A00%27&columnsWithAlias=true",
		"tx_isolation=%27READ-COMMITTED%27&sql_mode=%27%27",
		"tx_isolation=%27READ-UNCOMMITTED%27&multiStatements=true&rejectReadOnly=true",
		"charset=latin1&sql_mode=%27TRADITIONAL%27",
	} {
		db := source(t, at, params)
		db.SetMaxOpenConns(1)
		table := "t_" + strings.ToLower(rand.Text())
		s := must.Get(mysqllock.New(db, &mysqllock.Options{Table: table}))
		succeed(t, s.Create(t.Context()))
		follow(t, s, uint64(i), steps())
		follow(t, must.Get(sqllock.New(db, dialect.MySQL, &sqllock.Options{Table: table})), uint64(i), steps())
	}
}

// A pooler that lends connections for a transaction passes the whole contract,
// with wakes if the client may listen at the server; so does one that lends them
// for a session.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	s := servers.StartPostgres(t, "max_connections = 200", postgres.nosync)
	for _, mode := range []string{"transaction", "session"} {
		b := servers.StartPgBouncer(t, s, mode, "default_pool_size = 20", "max_client_conn = 2000")
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			if mode == "transaction" {
				contract(t, asking, func(t testing.TB, table string) store { return struct{ store }{open(t, with(b.URL(), "table", table))} })
				return
			}
			at := create(t, b.URL())
			follow(t, open(t, at), 1, steps())
			wakes(t, with(at, "listen", s.Addr()))
		})
		t.Run(mode+" and listen", func(t *testing.T) {
			t.Parallel()
			wakes(t, with(create(t, b.URL()), "listen", s.Addr()))
		})
		t.Run(mode+" and a pool", func(t *testing.T) {
			t.Parallel()
			at := create(t, b.URL())
			for _, conns := range []int32{1, 4} {
				config, err := pgxpool.ParseConfig(b.URL())
				succeed(t, err)
				config.MaxConns = conns
				pool, err := pgxpool.NewWithConfig(t.Context(), config)
				succeed(t, err)
				defer pool.Close()
				s := must.Get(pglock.New(pool, &pglock.Options{Table: table(at)}))
				defer s.Close()
				follow(t, s, uint64(conns), steps())
			}
		})
	}
}

// wakes fails if who waits is not told of its turn.
func wakes(t *testing.T, at string) {
	t.Helper()
	a, b := locker(t, at, nil), open(t, at)
	var claim driver.Ask
	told := make(chan driver.Grant, 8)
	tries := 0
	servers.Until(t, "a machine on which the claim keeps its place", func() bool {
		tries++
		key := fmt.Sprint("key", tries)
		held := lock(t, a, key)
		claim = exclusive(key, fmt.Sprint("b", tries))
		claim.Wait = true
		stop, err := b.(driver.Watcher).Watch(t.Context(), claim.Claim, func(g driver.Grant) { told <- g })
		succeed(t, err)
		t.Cleanup(stop)
		asked := time.Now()
		if g, err := b.Acquire(t.Context(), claim); g.OK || err != nil {
			t.Fatalf("a key that another holds: %+v, %v", g, err)
		}
		succeed(t, unlock(held))
		return time.Since(asked) < claim.Alive()
	})
	for late := time.After(patience); ; {
		select {
		case g := <-told:
			if g.OK {
				succeed(t, b.Release(context.Background(), asks.Releases(claim))[0])
				return
			}
		case <-late:
			t.Fatal("nobody said that it is its turn")
		}
	}
}
