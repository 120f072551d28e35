package mssqllock

import (
	"context"
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"strings"
	"testing"

	_ "github.com/microsoft/go-mssqldb"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// serverVariable names the server of the tests, as in
// sqlserver://user:password@host:port?database=master. No server can be started here. The user
// may create databases and logins.
const serverVariable = "HOLDFAST_TEST_SQLSERVER"

// A server is a database of its own on the server of the tests.
type server struct {
	url string
	db  *sql.DB
}

// aServer makes a database, and skips the test if there is no server.
func aServer(t testing.TB) *server {
	t.Helper()
	at := os.Getenv(serverVariable)
	if at == "" {
		t.Skipf("%s is not set: want the URL of a SQL Server", serverVariable)
	}
	u, err := url.Parse(at)
	if err != nil {
		t.Fatalf("%s is no URL", serverVariable) // without the URL, which may have a password
	}
	name := "holdfast_" + rand.Text()
	admin := database(t, with(*u, "database", "master"))
	// Babelfish fails if two sessions create databases at the same time.
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	for err != nil && strings.Contains(err.Error(), "concurrently updated") {
		_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE "+name); err != nil {
			t.Logf("remove the database of the test: %v", err)
		}
	})
	own := with(*u, "database", name)
	return &server{own, database(t, own)}
}

// with returns a URL with a parameter.
func with(u url.URL, name, value string) string {
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// database opens a database for the statements of a test.
func database(t testing.TB, at string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlserver", at)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(100)
	t.Cleanup(func() { db.Close() })
	return db
}

func do(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// opened returns a store that is not prepared.
func opened(t testing.TB, at string) driver.Store {
	t.Helper()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, at) })
	t.Cleanup(func() { s.Close() })
	return s
}

// prepared returns a store with its table.
func (s *server) prepared(t testing.TB, query string) driver.Store {
	t.Helper()
	store := opened(t, s.url+query)
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, store.(driver.Creator).Create(ctx) })
	return store
}

// Server is a database of the test.
func Server(t testing.TB) *sql.DB { return aServer(t).db }
