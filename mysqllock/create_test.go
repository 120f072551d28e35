package mysqllock

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/session/sessiontest"
)

// opened returns a store that is not prepared.
func opened(t *testing.T, url string) driver.Creator {
	t.Helper()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
	t.Cleanup(func() { s.Close() })
	return s.(driver.Creator)
}

// database is the server for a test's own statements.
func database(t *testing.T) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(config(t, server))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	return db
}

// TestCreateTogether: deployments begin on many machines at once.
func TestCreateTogether(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"?table=together", "?mode=session&table=together_fence"} {
		stores := make([]driver.Creator, 8)
		for i := range stores {
			stores[i] = opened(t, server+query)
		}
		var all sync.WaitGroup
		for _, s := range stores {
			all.Go(func() {
				if err := s.Create(context.WithoutCancel(t.Context())); err != nil {
					t.Errorf("%s: %v", query, err)
				}
			})
		}
		all.Wait()
	}
}

// TestCreateWaits: Create waits for a table or a row that somebody has locked, for longer than the
// server does. If the context ends first, the error says so, and why.
func TestCreateWaits(t *testing.T) {
	t.Parallel()
	for query, statements := range map[string][]string{
		"":              {"LOCK TABLES holdfast READ", "SELECT * FROM holdfast FOR UPDATE"},
		"?mode=session": {"LOCK TABLES holdfast_fence READ", "SELECT * FROM holdfast_fence FOR UPDATE"},
	} {
		m := shared.Database(t)
		s := opened(t, m.URL()+query)
		if err := s.Create(sessiontest.Bounded(t)); err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements {
			unlock := locking(t, m, statement)
			servers.Until(t, "a Create that ends with the context, and with the reason", func() bool { // A pause of this machine may end it before the first try.
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				err := s.Create(ctx)
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%s: Create returned %v, want the end of the context", statement, err)
				}
				return strings.Contains(err.Error(), "1205")
			})
			unlock()
			if err := s.Create(sessiontest.Bounded(t)); err != nil {
				t.Errorf("%s: afterwards, Create returned %v", statement, err)
			}
		}
	}
}

// TestSchema: what Schema tells is all that Create does.
func TestSchema(t *testing.T) {
	t.Parallel()
	db := database(t)
	for _, query := range []string{"?table=by_hand", "?mode=session&table=by_hand_fence"} {
		s := opened(t, server+query)
		for _, text := range s.Schema() {
			if _, err := db.ExecContext(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		if warnings, err := s.Check(t.Context()); err != nil || len(warnings) > 0 {
			t.Errorf("%s: Check returned %q and %v", query, warnings, err)
		}
	}
	var version int
	if err := db.QueryRowContext(t.Context(), "SELECT version FROM by_hand WHERE name = ''").Scan(&version); err != nil || version != 1 {
		t.Errorf("the row without a name has version %d (%v)", version, err)
	}
}

// TestNotCreated: who opens the store hears at once what is wrong, and what to
// do.
func TestNotCreated(t *testing.T) {
	t.Parallel()
	db := database(t)
	at, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"CREATE TABLE IF NOT EXISTS strange (name int)",
		"CREATE TABLE IF NOT EXISTS seen (name int)",
		"CREATE USER IF NOT EXISTS reader@'%' IDENTIFIED BY 'reads'",
		"CREATE USER IF NOT EXISTS maker@'%' IDENTIFIED BY 'makes'",
		"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, CREATE VIEW, DROP ON " + strings.Trim(at.Path, "/") + ".* TO maker@'%'",
		"GRANT SELECT ON " + strings.Trim(at.Path, "/") + ".seen TO reader@'%'",
	} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	at.User = url.UserPassword("maker", "makes")
	if err := opened(t, at.String()+"?table=made").Create(t.Context()); err != nil {
		t.Errorf("with the rights that the documentation names, Create returned %v", err)
	}
	at.User = url.UserPassword("reader", "reads")
	reader := at.String()
	for url, words := range map[string]string{
		server + "?table=absent":       `there is no table absent as this version needs it: run "holdfast init" once with the URL of this store`,
		server + "?table=nowhere.else": "table nowhere.else",
		server + "?table=strange":      "the table strange is not one of this package's",
		reader + "?table=mine":         "this user may not do that with the table mine",
	} {
		if err := sessiontest.Refused(t, url); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want an ErrInvalid with %q", url, err, words)
		}
	}
	for url, words := range map[string]string{
		server + "?table=nowhere.else": "there is no schema, or database, in which the table nowhere.else could be",
		reader + "?table=mine":         "to make it takes the right to create tables",
	} {
		if err := opened(t, url).Create(t.Context()); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: Create returned %v, want an ErrInvalid with %q", url, err, words)
		}
	}
}
