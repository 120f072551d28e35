package stores

import (
	"context"
	"database/sql"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func mysqlStore() Store {
	return Store{
		Name: "mysql", Title: "MariaDB, rows", Cost: "statements", Waiting: 100,
		Modules: []string{"github.com/go-sql-driver/mysql"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "Holdfast, conns by default", Open: byDefault},
			{Name: "row by hand, 5 ms", Kind: Bare, Open: openMySQLRow},
			{Name: "GET_LOCK on go-sql-driver", Kind: Bare, Open: openGetLock},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			m, s := startMariaDB(tb, "?conns=64")
			m.Must(`CREATE TABLE bare (name varbinary(512) PRIMARY KEY, owner varchar(64), expires datetime(6))`)
			return s
		},
	}
}

// mysqlSession has named locks. The bare lock blocks in the server, which takes a
// connection for each waiter and each holder.
func mysqlSession() Store {
	return Store{
		Name: "mysql-session", Title: "MariaDB, sessions", Cost: "statements", Polls: true, Waiting: 100,
		Modules: []string{"github.com/go-sql-driver/mysql"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt},
			{Name: "GET_LOCK on go-sql-driver", Kind: Bare, Open: openGetLock},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			_, s := startMariaDB(tb, "?mode=session")
			return s
		},
	}
}

func startMariaDB(tb servers.TB, params string) (*servers.MariaDB, *Server) {
	m := servers.StartMariaDB(tb, "max_connections = 1000")
	url := m.URL() + params
	create(tb, url)
	about := m.Must(`SELECT concat('MariaDB ', version(), ', innodb_buffer_pool_size ', @@innodb_buffer_pool_size DIV 1048576,
' MB, innodb_flush_log_at_trx_commit ', @@innodb_flush_log_at_trx_commit)`)
	return m, &Server{At: []string{url, m.URL()}, About: strings.TrimSpace(about), Count: func(Side) int {
		row := strings.Fields(m.Must(`SHOW GLOBAL STATUS LIKE 'Questions'`))
		n, err := strconv.Atoi(row[len(row)-1])
		if err != nil {
			tb.Fatalf("%s: %v", m.Addr(), err)
		}
		return n
	}}
}

// newMySQL writes values into the text of statements. This saves a round trip.
func newMySQL(at string) (*sql.DB, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.Trim(u.Path, "/")
	config.InterpolateParams = true
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(64) // a connection for each goroutine that locks
	db.SetMaxOpenConns(64)
	return db, nil
}

func openMySQLRow(at []string, ttl time.Duration) (*Library, error) {
	db, err := newMySQL(at[1])
	if err != nil {
		return nil, err
	}
	const (
		take = `UPDATE bare SET owner = ?, expires = NOW(6) + INTERVAL ? MICROSECOND WHERE name = ? AND expires <= NOW(6)`
		add  = `INSERT IGNORE INTO bare (name, owner, expires) VALUES (?, '', '2000-01-01')`
		free = `UPDATE bare SET owner = '', expires = '2000-01-01' WHERE name = ? AND owner = ?`
	)
	return rowIn(db, add, free, func(ctx context.Context, key, owner string) (sql.Result, error) {
		return db.ExecContext(ctx, take, owner, ttl.Microseconds(), key)
	}), nil
}

func openGetLock(at []string, _ time.Duration) (*Library, error) {
	db, err := newMySQL(at[1])
	if err != nil {
		return nil, err
	}
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			conn, err := db.Conn(ctx)
			if err != nil {
				return nil, err
			}
			var got bool
			err = conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, 3600)`, key).Scan(&got)
			if err = gone(got, err); err != nil {
				conn.Close()
				return nil, err
			}
			return func() error {
				defer conn.Close()
				var held bool
				err := conn.QueryRowContext(context.Background(), `SELECT RELEASE_LOCK(?)`, key).Scan(&held)
				return gone(held, err)
			}, nil
		},
		Close: func() { _ = db.Close() },
	}, nil
}
