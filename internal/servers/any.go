package servers

import (
	"crypto/rand"
	"net"
	"net/url"
	"os"
	"strings"
)

// AnyPostgres returns the server whose URL is $HOLDFAST_TEST_POSTGRES, or starts a server
// with these options. AnyPostgres is for tests that need no special server and do the
// server no harm. The URL has to name a superuser. The tests get a separate database
// there, which is removed when the tests end.
func AnyPostgres(tb TB, options ...string) *Postgres {
	tb.Helper()
	at := given(tb, "HOLDFAST_TEST_POSTGRES", "5432")
	if at == nil {
		return StartPostgres(tb, options...)
	}
	if at.RawQuery == "" {
		at.RawQuery = "sslmode=prefer" // so that tests may add parameters
	}
	return (&Postgres{Process: &Process{tb: tb}, at: at}).Database(tb)
}

// AnyMariaDB is AnyPostgres for $HOLDFAST_TEST_MYSQL, which may be a MySQL server.
func AnyMariaDB(tb TB, options ...string) *MariaDB {
	tb.Helper()
	at := given(tb, "HOLDFAST_TEST_MYSQL", "3306")
	if at == nil {
		return StartMariaDB(tb, options...)
	}
	if at.RawQuery != "" {
		tb.Fatalf("HOLDFAST_TEST_MYSQL has parameters: want mysql://user:password@host:port/database")
	}
	client := Installed(tb, "mariadb-client", "mariadb", "mysql")
	return (&MariaDB{Process: &Process{tb: tb}, client: client, at: at}).Database(tb)
}

// given returns the URL in a variable, or nil if the variable is not set.
func given(tb TB, variable, port string) *url.URL {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return nil
	}
	at, err := url.Parse(text)
	if err != nil || at.Hostname() == "" || strings.Trim(at.Path, "/") == "" {
		tb.Fatalf("%s is no URL with a host and a database", variable) // without the URL, which may have a password
		return nil
	}
	if at.Port() == "" {
		at.Host = net.JoinHostPort(at.Hostname(), port)
	}
	return at
}

// database makes a database on a server, and returns the URL of the database.
func database(tb TB, at *url.URL, do func(sql string) error, force string) *url.URL {
	tb.Helper()
	name := "holdfast_" + strings.ToLower(rand.Text())
	if err := do("CREATE DATABASE " + name); err != nil {
		tb.Fatalf("make a database for the tests on %s: %v", at.Host, err)
	}
	tb.Cleanup(func() {
		// The server gives up after seconds if a connection is slow to end.
		if err := await(func() error { return do("DROP DATABASE IF EXISTS " + name + force) }, nil); err != nil {
			tb.Logf("remove the database of the tests from %s: %v", at.Host, err)
		}
	})
	own := *at
	own.Path = "/" + name
	return &own
}
