package onceonly

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/once"
)

// open opens accounts as another process would.
func open(t *testing.T, dir string) *Accounts {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.db")+"?_txlock=immediate&_pragma=busy_timeout(60000)&_pragma=journal_mode(wal)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	locks, err := holdfast.Open(t.Context(), "mem://"+driver.PublicID(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { locks.Close() })
	records := &once.SQL{DB: db, Dialect: dialect.SQLite}
	a := &Accounts{records, once.Runner{Locks: locks, Records: records, Retention: 30 * 24 * time.Hour}}
	if err := a.Records.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// Ten orders of 10 are each sent ten times, through two processes as it were,
// and by both ways. An order without an answer is sent again.
func TestEachOrderOnce(t *testing.T) {
	dir := t.TempDir()
	one, two := open(t, dir), open(t, dir)
	exec := func(query string) {
		t.Helper()
		if _, err := one.Records.DB.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE accounts (id integer PRIMARY KEY, balance integer NOT NULL)`)
	exec(`INSERT INTO accounts VALUES (42, 100)`)
	ways := []func(context.Context, string, int64, int64) ([]byte, error){one.Withdraw, two.Withdraw, one.WithdrawTx, two.WithdrawTx}
	results := make([]sync.Map, 10)
	var all sync.WaitGroup
	for sent := range 100 {
		all.Go(func() {
			order := sent % len(results)
			withdraw := func(ctx context.Context, order string, _ ...any) ([]byte, error) {
				return ways[sent/len(results)%len(ways)](ctx, order, 42, 10)
			}
			result, err := servers.Patient(t.Context(), withdraw, fmt.Sprint(order))
			if err != nil {
				t.Errorf("order %d: %v", order, err)
			}
			results[order].Store(string(result), true)
		})
	}
	all.Wait()
	for order := range results {
		n := 0
		results[order].Range(func(any, any) bool { n++; return true })
		if n != 1 {
			t.Errorf("order %d has %d results", order, n)
		}
	}
	var balance int64
	if err := two.Records.DB.QueryRowContext(t.Context(), `SELECT balance FROM accounts`).Scan(&balance); err != nil || balance != 0 {
		t.Errorf("the balance is %d, %v; want 0", balance, err)
	}
	for _, withdraw := range ways {
		if _, err := withdraw(t.Context(), "one more", 42, 10); !errors.Is(err, ErrFunds) {
			t.Errorf("got %v, want ErrFunds", err)
		}
	}
}
