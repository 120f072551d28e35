package servers

import (
	"crypto/rand"
	"net"
	"net/url"
	"os"
	"strings"
)

// AnyPostgres returns the server whose URL is $HOLDFAST_TEST_POSTGRES, for tests
// that are content with any and do it no harm, or starts one with these options.
// The URL has to name a superuser. The tests get a database of their own there,
// which goes when they end.
func AnyPostgres(tb TB, options ...string) *Postgres {
	tb.Helper()
	at := given(tb, "HOLDFAST_TEST_POSTGRES", "5432")
	if at == nil {
		return StartPostgres(tb, options...)
	}
	if at.RawQuery == "" {
		at.RawQuery = "sslmode=prefer" // so that tests may add to it
	}
	first, p := &Postgres{Process: &Process{tb: tb}, at: at}, &Postgres{Process: &Process{tb: tb}}
	p.at = database(tb, at, func(sql string) error { _, err := first.Do(sql); return err }, " WITH (FORCE)")
	return p
}

// AnyMariaDB is AnyPostgres for $HOLDFAST_TEST_MYSQL, which may be a server of
// MySQL.
func AnyMariaDB(tb TB, options ...string) *MariaDB {
	tb.Helper()
	at := given(tb, "HOLDFAST_TEST_MYSQL", "3306")
	if at == nil {
		return StartMariaDB(tb, options...)
	}
	if at.RawQuery != "" {
		tb.Fatalf("HOLDFAST_TEST_MYSQL has parameters: want mysql://user:password@host:port/database")
	}
	client := installed(tb, "mariadb-client", "mariadb", "mysql")
	first, m := &MariaDB{Process: &Process{tb: tb}, client: client, at: at}, &MariaDB{Process: &Process{tb: tb}, client: client}
	m.at = database(tb, at, func(sql string) error { _, err := first.Do(sql); return err }, "")
	return m
}

// given returns the URL in a variable, nil if there is none.
func given(tb TB, variable, port string) *url.URL {
	tb.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return nil
	}
	at, err := url.Parse(text)
	if err != nil || at.Hostname() == "" || strings.Trim(at.Path, "/") == "" {
		tb.Fatalf("%s is no URL with a host and a database", variable) // It may have a password.
		return nil
	}
	if at.Port() == "" {
		at.Host = net.JoinHostPort(at.Hostname(), port)
	}
	return at
}

// database makes a database on a server, and returns its URL.
func database(tb TB, at *url.URL, do func(sql string) error, force string) *url.URL {
	tb.Helper()
	name := "holdfast_" + strings.ToLower(rand.Text())
	if err := do("CREATE DATABASE " + name); err != nil {
		tb.Fatalf("make a database for the tests on %s: %v", at.Host, err)
	}
	tb.Cleanup(func() {
		if err := do("DROP DATABASE " + name + force); err != nil {
			tb.Logf("remove the database of the tests from %s: %v", at.Host, err)
		}
	})
	own := *at
	own.Path = "/" + name
	return &own
}
