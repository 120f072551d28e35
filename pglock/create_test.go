package pglock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
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

// TestCreateTogether: deployments begin on many machines at once.
func TestCreateTogether(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"&table=together", "&mode=session&sequence=together_fence"} {
		stores := make([]driver.Creator, 8)
		for i := range stores {
			stores[i] = opened(t, server.URL()+query)
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

// TestCreateBesideAReader: a new version makes a change of the table that waits for readers of the
// table. Everybody else would wait behind the change.
func TestCreateBesideAReader(t *testing.T) {
	t.Parallel()
	s := opened(t, server.URL()+"&table=read")
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	if strings.TrimSpace(server.Must(lz4)) != "1" {
		servers.Lacking(t, "the server has no LZ4: use PostgreSQL 14 or later, built with LZ4")
	}
	server.Must("ALTER TABLE read ALTER claims SET COMPRESSION pglz")
	compressed := func() string {
		return strings.TrimSpace(server.Must("SELECT attcompression FROM pg_attribute WHERE attrelid = 'read'::regclass AND attname = 'claims'"))
	}
	reader := must.Get(pgx.Connect(t.Context(), server.URL()))
	defer reader.Close(context.WithoutCancel(t.Context()))
	reading := must.Get(reader.Begin(t.Context()))
	must.Get(reading.Exec(t.Context(), "SELECT FROM read"))
	servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
	if got := compressed(); got != "p" {
		t.Errorf("beside a reader the compression is now %q, want no change", got)
	}
	if err := reading.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	servers.Until(t, "the next Create to change the table", func() bool {
		servers.Insist(t, func(ctx context.Context) (any, error) { return nil, s.Create(ctx) })
		return compressed() == "l"
	})
}

// lz4 counts whether the server has LZ4.
const lz4 = `SELECT count(*) FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)`

// TestSchema: what Schema tells is all that Create does.
func TestSchema(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"&table=by_hand", "&mode=session&sequence=by_hand_fence"} {
		s := opened(t, server.URL()+query)
		server.Must(strings.Join(s.Schema(), ";\n"))
		warnings, err := s.Check(t.Context())
		warnings = slices.DeleteFunc(warnings, func(w string) bool { return strings.HasPrefix(w, "fsync is off") }) // as it is here
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: Check returned %q and %v", query, warnings, err)
		}
	}
	if got := server.Must("SELECT version FROM by_hand WHERE name = ''"); strings.TrimSpace(got) != "1" {
		t.Errorf("the row without a name has version %q", got)
	}
	const claims = `SELECT count(*) FROM pg_attribute WHERE attrelid = 'by_hand'::regclass AND attname = 'claims' AND attcompression = 'l'`
	if strings.TrimSpace(server.Must(lz4)) == "1" && strings.TrimSpace(server.Must(claims)) != "1" {
		t.Error("the server has LZ4, and the claims are not compressed by it")
	}
}

// TestNotCreated: who opens the store hears at once what is wrong, and what to
// do.
func TestNotCreated(t *testing.T) {
	t.Parallel()
	server.Must(`
		CREATE TABLE strange (name text);
		REVOKE CREATE ON SCHEMA public FROM PUBLIC; -- as in PostgreSQL 15
		CREATE ROLE reader LOGIN PASSWORD 'reads';
		CREATE SCHEMA closed; CREATE TABLE closed.locks (name text)`)
	reader := strings.Replace(server.URL(), "postgres:secret@", "reader:reads@", 1)
	for url, words := range map[string]string{
		server.URL() + "&table=absent":       `there is no table absent as this version needs it: run "holdfast init" once with the URL of this store`,
		server.URL() + "&table=nowhere.else": "there is no table nowhere.else",
		server.URL() + "&table=strange":      "the table strange is not one of this package's",
		reader + "&table=closed.locks":       "this user may not do that with the table closed.locks",
	} {
		if err := sessiontest.Refused(t, url); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: got %v, want an ErrInvalid with %q", url, err, words)
		}
	}
	for url, words := range map[string]string{
		server.URL() + "&table=nowhere.else": "there is no schema, or database, in which the table nowhere.else could be",
		reader + "&table=mine":               "to make it takes the right to create tables",
	} {
		if err := opened(t, url).Create(t.Context()); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: Create returned %v, want an ErrInvalid with %q", url, err, words)
		}
	}
}
