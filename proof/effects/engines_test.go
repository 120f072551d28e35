// Tests of package once with several processes, on every kind of records.
package effects

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/microsoft/go-mssqldb"
	"github.com/redis/rueidis"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/dialect"
	_ "github.com/holdfast-go/holdfast/filelock"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
	_ "github.com/holdfast-go/holdfast/mssqllock"
	_ "github.com/holdfast-go/holdfast/mysqllock"
	"github.com/holdfast-go/holdfast/once"
	_ "github.com/holdfast-go/holdfast/pglock"
	_ "github.com/holdfast-go/holdfast/redislock"
	"github.com/holdfast-go/holdfast/redislock/redisonce"
	_ "github.com/holdfast-go/holdfast/sqlitelock"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = 60 * time.Second

var (
	postgres *servers.Postgres
	mariadb  *servers.MariaDB
)

// sqlServer lets the tests with SQL Server run one at a time. Babelfish parses the first statements
// of each connection for a quarter of a second, and every process has many connections.
var sqlServer sync.Mutex

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return workUntilTold(args[0], args[1]) })
	// These tests wait for locks to end most of the time.
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	os.Exit(servers.Main(m, func(tb servers.TB) {
		postgres = servers.AnyPostgres(tb, "max_connections = 500", "fsync = off")
		if !testing.Short() {
			mariadb = servers.AnyMariaDB(tb, "max_connections = 500", "innodb_flush_method = nosync")
		}
	}))
}

// quick are the engines that suffice for -short: files, rows and keys.
var quick = []string{"file", "postgres", "redis"}

// engines are where locks and records are kept, by the scheme of a URL.
var engines = map[string]struct {
	at   func(t *testing.T) string
	open func(at string) (once.Records, error)
}{
	"file": {
		at:   func(t *testing.T) string { return "file://" + filepath.Join(t.TempDir(), "locks") },
		open: func(at string) (once.Records, error) { return &once.File{Dir: pathOf(at) + "-once"}, nil },
	},
	"sqlite": {
		at: func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "locks.db") },
		open: func(at string) (once.Records, error) {
			return table(dialect.SQLite, "sqlite", "file:"+pathOf(at)+"-once?_txlock=immediate&_pragma=busy_timeout(30000)&_pragma=journal_mode(wal)")
		},
	},
	"postgres": {
		at:   func(*testing.T) string { return postgres.URL() },
		open: func(at string) (once.Records, error) { return table(dialect.Postgres, "pgx", at) },
	},
	"mysql": {
		at: func(*testing.T) string { return mariadb.URL() },
		open: func(at string) (once.Records, error) {
			u, err := url.Parse(at)
			if err != nil {
				return nil, err
			}
			password, _ := u.User.Password()
			return table(dialect.MySQL, "mysql", fmt.Sprintf("%s:%s@tcp(%s)%s", u.User.Username(), password, u.Host, u.Path))
		},
	},
	"sqlserver": {
		at: func(t *testing.T) string {
			sqlServer.Lock()
			t.Cleanup(sqlServer.Unlock)
			return servers.AnySQLServer(t)
		},
		open: func(at string) (once.Records, error) { return table(dialect.SQLServer, "sqlserver", at) },
	},
	"redis": {
		at: func(t *testing.T) string { return servers.StartRedis(t).URL() },
		open: func(at string) (once.Records, error) {
			u, err := url.Parse(at)
			if err != nil {
				return nil, err
			}
			option := rueidis.ClientOption{InitAddress: []string{u.Host}, DisableCache: true}
			client, err := rueidis.NewClient(option)
			for errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) { // on a slow machine
				client, err = rueidis.NewClient(option)
			}
			return redisonce.New(client, nil), err
		},
	},
}

func table(dialect dialect.Dialect, driver, source string) (once.Records, error) {
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return &once.SQL{DB: db, Dialect: dialect}, nil
}

func pathOf(at string) string {
	_, path, _ := strings.Cut(at, "://")
	return path
}

func recordsAt(at string) (once.Records, error) {
	scheme, _, _ := strings.Cut(at, "://")
	return engines[scheme].open(at)
}

// each runs a test on every engine.
func each(t *testing.T, test func(c *company)) {
	t.Parallel()
	for scheme, e := range engines {
		t.Run(scheme, func(t *testing.T) {
			if testing.Short() && !slices.Contains(quick, scheme) {
				t.Skip("the same on one more engine: make prove")
			}
			t.Parallel()
			test(found(t, e.at(t)))
		})
	}
}
