package mssqllock

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/microsoft/go-mssqldb"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// A server is a database of its own on the server of the tests.
type server struct {
	url string
	db  *sql.DB
}

// aServer makes a database, and skips the test if there is no server.
func aServer(t testing.TB) *server {
	t.Helper()
	at := servers.AnySQLServer(t)
	return &server{at, database(t, at)}
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
