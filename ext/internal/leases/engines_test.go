// Tests of the leases in tables, which packages sqllock, pglock and mysqllock
// keep together: what befalls a server, its network and its users.
package leases

import (
	"context"
	"crypto/rand"
	"flag"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	_ "github.com/holdfast-go/holdfast/ext/mysqllock"
	_ "github.com/holdfast-go/holdfast/ext/pglock"
)

// patience bounds every wait. A healthy server needs a thousandth.
const patience = 30 * time.Second

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
	start  func(tb servers.TB, options ...string) server
	shared server // for the tests that do it no harm
}

var (
	postgres = &engine{name: "PostgreSQL", start: func(tb servers.TB, options ...string) server { return servers.StartPostgres(tb, options...) }}
	mariadb  = &engine{name: "MariaDB", start: func(tb servers.TB, options ...string) server { return servers.StartMariaDB(tb, options...) }}
)

func TestMain(m *testing.M) {
	// These tests wait for servers most of the time, not for the processor.
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(servers.Main(m, func(tb servers.TB) {
		postgres.shared, mariadb.shared = postgres.start(tb, "max_connections = 500"), mariadb.start(tb)
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := driver.Open(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(store)
}

// create returns the URL of a table that it makes on a server.
func create(t testing.TB, at string) string {
	t.Helper()
	at = with(at, "table", "t_"+strings.ToLower(rand.Text()))
	must(t, open(t, at).Create(t.Context()))
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
	locks := holdfast.New(s, opts)
	t.Cleanup(func() { locks.Close() })
	return locks
}

// locker returns a Locker with a store of its own, as another process has.
func locker(t testing.TB, at string, opts *holdfast.Options) *holdfast.Locker {
	t.Helper()
	return lockerOf(t, open(t, at), opts)
}

func lock(t testing.TB, locks *holdfast.Locker, key string, opts ...holdfast.LockOption) *holdfast.Lock {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	l, err := locks.Lock(ctx, key, opts...)
	must(t, err)
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func exclusive(key, id string) driver.Claim {
	return driver.Claim{Key: key, ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute, Span: 1}
}

// until returns when check holds.
func until(t testing.TB, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !check(); {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited for %v: %s", patience, what)
		}
	}
}

// line is how many stand in line for a key.
func line(t testing.TB, locks *holdfast.Locker, key string) (n int) {
	t.Helper()
	holders, err := locks.Holders(context.Background(), key)
	must(t, err)
	for _, h := range holders {
		if h.Waiting {
			n++
		}
	}
	return n
}
