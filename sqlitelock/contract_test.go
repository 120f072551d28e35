package sqlitelock

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/goldentest"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is silent.
func TestContract(t *testing.T) { drivertest.Run(t, harness(false)) }

// Where the system does not tell of writes, waiters are woken all the same.
func TestWatchWithoutEvents(t *testing.T) {
	h := harness(true)
	for _, failure := range drivertest.Check(t, h, "watch/release", "watch/everyone-in-turn", "watch/all-readers", "watch/stop") {
		t.Error(failure)
	}
}

func harness(deaf bool) drivertest.Harness {
	var folders sync.Map
	pathOf := func(t testing.TB) string {
		dir, ok := folders.Load(t)
		if !ok {
			dir, _ = folders.LoadOrStore(t, t.TempDir())
		}
		return filepath.Join(dir.(string), "locks.db")
	}
	h := drivertest.Harness{
		Lacks: drivertest.Notify,
		// As a URL does, but nothing waits for the disk.
		Open: func(t testing.TB) driver.Store {
			path := pathOf(t)
			db, err := openDB(path, "journal_mode(WAL)", "synchronous(off)")
			if err != nil {
				t.Fatal(err)
			}
			f := &file{db: db, own: path}
			l := newListener(f)
			l.deaf = deaf
			s := must.Get(newStore(f, l, nil))
			s.close = db.Close
			return servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return s, s.Create(ctx) })
		},
	}
	h.Newer = func(t testing.TB, key string) func() string {
		return table(t, nil, pathOf(t)).Newer(key)
	}
	h.Linked = func(t testing.TB) (driver.Store, drivertest.Link) {
		s := h.Open(t)
		db, err := sql.Open("sqlite", "file:"+pathOf(t)+"?_txlock=exclusive&_pragma=busy_timeout(60000)") // until the store has written
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return s, &writer{TB: t, db: db}
	}
	return h
}

// table is the table of a store, to read and write by SQL.
func table(t testing.TB, s driver.Store, path string) goldentest.Table {
	t.Helper()
	db, err := openDB(path, "journal_mode(WAL)", "synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return goldentest.Table{Store: s, Name: sqlstore.DefaultTable, Exec: func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%v in %s", err, statement)
		}
	}, Query: func(query string) string {
		t.Helper()
		var values [7]any
		if err := db.QueryRow(query).Scan(&values[0], &values[1], &values[2], &values[3], &values[4], &values[5], &values[6]); err != nil {
			t.Fatalf("%v in %s", err, query)
		}
		return fmt.Sprintf("%v", values)
	}}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "locks.db")
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, "sqlite://"+path) })
	defer s.Close()
	table(t, s, path).Golden(t)
}

// A writer is another program that keeps the database for itself.
type writer struct {
	testing.TB
	db *sql.DB
	tx *sql.Tx
}

func (w *writer) Blackhole(on bool) {
	if !on {
		_ = w.tx.Rollback()
		return
	}
	tx, err := w.db.BeginTx(context.Background(), nil)
	if err != nil {
		w.Fatal(err)
	}
	w.tx = tx
}

func (w *writer) Refuse(on bool) { w.Blackhole(on) }
func (w *writer) Reset()         {}
