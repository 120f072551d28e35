package sqlitelock

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
)

func exclusive(id string) driver.Ask {
	return driver.Ask{Claim: driver.Claim{
		Key: "key", ID: id, Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Hour,
	}, Span: 1}
}

func opened(t *testing.T, url string) *Store {
	t.Helper()
	s, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*Store)
}

func granted(t *testing.T, s driver.Store, a driver.Ask) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), a)
	if err != nil || !g.OK {
		t.Fatalf("Acquire returned %+v, %v", g, err)
	}
	return g
}

// A process with an open file that is no longer in its place keeps no locks in the file.
func TestFileRemovedOrReplaced(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "locks.db")
			s := opened(t, "sqlite://"+path)
			holder, waiter := exclusive("holder"), exclusive("waiter")
			granted(t, s, holder)
			waiter.Wait = true
			if g, err := s.Acquire(t.Context(), waiter); g.OK || err != nil {
				t.Fatalf("the waiter got %+v, %v", g, err)
			}
			woken := make(chan driver.Grant, 10)
			stop, err := s.Watch(t.Context(), waiter.Claim, func(g driver.Grant) { woken <- g })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			select {
			case g := <-woken:
				if g.OK {
					t.Errorf("the waiter was told that it holds: %+v", g)
				}
			case <-time.After(time.Minute):
				t.Error("nobody told the waiter to ask")
			}
			if _, err := s.Acquire(t.Context(), exclusive("other")); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "removed or replaced") {
				t.Errorf("Acquire returned %v", err)
			}
			for _, errs := range [][]error{
				s.Renew(t.Context(), []driver.Renewal{{Claim: holder.Claim}}),
				s.Release(t.Context(), []driver.Release{{Claim: holder.Claim}}),
			} {
				if len(errs) != 1 || !errors.Is(errs[0], driver.ErrLost) {
					t.Errorf("a call for the claim returned %v, want ErrLost", errs)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			granted(t, opened(t, "sqlite://"+path), exclusive("next"))
		})
	}
}

// A file that cannot be a database is refused with its path, and never tried again.
func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                              "is a folder",
		text:                             "not a SQLite database",
		filepath.Join(dir, "no", "a.db"): "its folder is missing",
		filepath.Join(text, "locks.db"):  "its folder is missing",
	} {
		_, err := driver.Open(t.Context(), "sqlite://"+path)
		if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestNetworkFileSystem(t *testing.T) {
	defer func(real func(string) string) { network = real }(network)
	network = func(string) string { return "made-up" }
	path := filepath.Join(t.TempDir(), "locks.db")
	if _, err := driver.Open(t.Context(), "sqlite://"+path); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "made-up") {
		t.Errorf("Open says %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file all the same: %v", err)
	}
}

// A full database says so; who holds can still release, and then lock again.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := opened(t, "sqlite://"+path)
	db, err := openDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	small := must.Get(New(db, nil))
	defer small.Close()
	granted(t, small, exclusive("holder"))
	if _, err := db.Exec(`PRAGMA max_page_count = 1`); err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		a := exclusive("a")
		a.Key, a.Note = strings.Repeat("x", 400)+time.Duration(i).String(), strings.Repeat("y", 900)
		_, err := small.Acquire(t.Context(), a)
		if err == nil {
			continue
		}
		if errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "is full") || !strings.Contains(err.Error(), path) {
			t.Errorf("Acquire returned %v, want an error that may pass and says that the disk is full", err)
		}
		if errs := small.Release(t.Context(), []driver.Release{{Claim: exclusive("holder").Claim}}); errors.Join(errs...) != nil {
			t.Errorf("Release returned %v", errs)
		}
		granted(t, s, exclusive("next"))
		return
	}
	t.Error("it is never full")
}

func TestReadOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	opened(t, "sqlite://"+path)
	db, err := openDB(path, "query_only(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = must.Get(New(db, nil)).Acquire(t.Context(), exclusive("a"))
	if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "may not write the file") || !strings.Contains(err.Error(), path) {
		t.Errorf("Acquire returned %v", err)
	}
}

func TestWithoutAFile(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := must.Get(New(db, nil)).Create(t.Context()); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "has no file") {
		t.Errorf("Create returned %v", err)
	}
}

// A database of the user's own has one connection or many.
func TestOwnDatabase(t *testing.T) {
	for _, conns := range []int{1, 4} {
		db, err := sql.Open("sqlite", dsn(filepath.Join(t.TempDir(), "a b%c?.db"), "journal_mode(WAL)"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(conns)
		s := must.Get(New(db, &Options{Table: "locks"}))
		defer s.Close()
		if _, err := s.Acquire(t.Context(), exclusive("early")); !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "no table locks") {
			t.Errorf("without a table: %v", err)
		}
		if err := s.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		granted(t, s, exclusive("holder"))
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := db.PingContext(t.Context()); err != nil {
			t.Errorf("Close has closed what it did not open: %v", err)
		}
	}
}

// While another writes, a call tries again until its context ends, and then
// says both.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := opened(t, "sqlite://"+path)
	db, err := openDB(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	servers.Until(t, "a try before the end of the context", func() bool { // A machine may pause until then.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Acquire(ctx, exclusive("a"))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire returned %v", err)
		}
		return strings.Contains(err.Error(), "database is locked")
	})
	done := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), exclusive("a"))
		done <- err
	}()
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Acquire returned %v once nobody writes", err)
	}
}
