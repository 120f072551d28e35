// Tests of the leases in tables, which packages sqllock, pglock and mysqllock keep
// together: faults of a server, its network and its users. The common rules for locks of
// sessions are tested here, too.
package leases

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/unlocking"
	"github.com/holdfast-go/holdfast/internal/workers"
	"github.com/holdfast-go/holdfast/mysqllock"
	"github.com/holdfast-go/holdfast/pglock"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = time.Minute

// A server is what all engines' servers can do.
type server interface {
	Addr() string
	URL() string
	Must(sql string) string
	Do(sql string) (string, error)
	Kill()
	Restart()
}

// An engine starts servers.
type engine struct {
	name   string
	shared server // for the tests that do it no harm
	start  func(tb servers.TB, options ...string) server
	nosync string // an option: the server does not wait for the disk
	ears   int    // connections of a process that wait for wake-ups, at most, besides the first

	// pool is a database as users have it, and a store on it.
	pool func(t *testing.T, at string, conns int) (*sql.DB, store)
}

var (
	postgres = &engine{name: "PostgreSQL", nosync: "fsync = off", pool: pgxPool, start: func(tb servers.TB, options ...string) server {
		return servers.StartPostgres(tb, options...)
	}}
	mariadb = &engine{name: "MariaDB", nosync: "innodb_flush_method = nosync", pool: mysqlPool, ears: 4, start: func(tb servers.TB, options ...string) server {
		return servers.StartMariaDB(tb, options...)
	}}
)

func pgxPool(t *testing.T, at string, conns int) (*sql.DB, store) {
	config, err := pgxpool.ParseConfig(without(at, "table"))
	succeed(t, err)
	config.MaxConns = int32(conns)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	succeed(t, err)
	db := stdlib.OpenDBFromPool(pool)
	s := must.Get(pglock.New(pool, &pglock.Options{Table: table(at)}))
	t.Cleanup(func() {
		s.Close()
		db.Close()
		pool.Close()
	})
	return db, s
}

func mysqlPool(t *testing.T, at string, conns int) (*sql.DB, store) {
	db := source(t, at, "")
	db.SetMaxOpenConns(conns)
	return db, must.Get(mysqllock.New(db, &mysqllock.Options{Table: table(at)}))
}

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return workUntilTold(args[0], args[1]) })
	// These tests wait for servers most of the time, not for the processor.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(servers.Main(m, func(tb servers.TB) {
		postgres.shared = servers.AnyPostgres(tb, "max_connections = 500", postgres.nosync)
		mariadb.shared = servers.AnyMariaDB(tb, "max_connections = 500", mariadb.nosync)
	}))
}

// each runs a test on every engine.
func each(t *testing.T, test func(t *testing.T, e *engine)) {
	t.Parallel()
	for _, e := range []*engine{postgres, mariadb} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// A store is what the stores of all engines can do.
type store interface {
	driver.Store
	driver.Inspector
	driver.Checker
	Create(ctx context.Context) error
}

// with returns a URL with more parameters, in pairs.
func with(at string, params ...string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	query := u.Query()
	for i := 0; i < len(params); i += 2 {
		query.Set(params[i], params[i+1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// within returns the URL of another database.
func within(at, database string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + database
	return u.String()
}

// unique makes a name that nobody else has for what a server keeps, until drop,
// a statement with %[1]s for the name, removes it when the test ends.
func unique(t *testing.T, s server, name, drop string) string {
	name += "_" + strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		if _, err := s.Do(fmt.Sprintf(drop, name)); err != nil {
			t.Logf("%s stays: %v", name, err)
		}
	})
	return name
}

// without returns a URL without a parameter.
func without(at, param string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	query := u.Query()
	query.Del(param)
	u.RawQuery = query.Encode()
	return u.String()
}

// through returns a URL with another host.
func through(at, host string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	u.Host = host
	return u.String()
}

func open(t testing.TB, at string) store {
	t.Helper()
	return openAny(t, at).(store)
}

// openAny opens locks of sessions, too.
func openAny(t testing.TB, at string) driver.Store {
	t.Helper()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
	t.Cleanup(func() { s.Close() })
	return s
}

// create returns the URL of a table that it makes on a server.
func create(t testing.TB, at string) string {
	t.Helper()
	at = with(at, "table", "t_"+strings.ToLower(rand.Text()))
	succeed(t, open(t, at).Create(t.Context()))
	return at
}

// table is the name of the table that a URL names.
func table(at string) string {
	u, err := url.Parse(at)
	if err != nil {
		panic(err)
	}
	return u.Query().Get("table")
}

func lockerOf(t testing.TB, s driver.Store, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	locks := must.Get(holdfast.New(s, opts))
	t.Cleanup(func() { locks.Close() })
	return locks
}

// locker returns a Locker with a store of its own, as another process has.
func locker(t testing.TB, at string, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	return lockerOf(t, openAny(t, at), opts)
}

func lock(t testing.TB, locks *holdfast.Locker, key string, opts ...holdfast.LockOption) *holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := servers.Patient(ctx, func(ctx context.Context, key string, _ ...holdfast.LockOption) (*holdfast.Lock, error) {
		return locks.Lock(ctx, key, opts...)
	}, key)
	succeed(t, err)
	return l
}

// unlock leaves to the background what is not answered in time.
func unlock(l *holdfast.Lock) error { return unlocking.Release(l.Unlock) }

// unlockAtOnce is unlock for a lock that was granted just now.
func unlockAtOnce(l *holdfast.Lock) error { return unlocking.AtOnce(l) }

func succeed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func exclusive(key, id string) driver.Ask {
	c := driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
	return driver.Ask{Claim: c, Span: 1}
}

// line is how many wait in the queue for a key.
func line(t testing.TB, locks *holdfast.Locker, key string) (n int) {
	t.Helper()
	holders := servers.Insist(t, func(ctx context.Context) ([]driver.Holder, error) { return locks.Holders(ctx, key) })
	for _, h := range holders {
		if h.Waiting {
			n++
		}
	}
	return n
}
