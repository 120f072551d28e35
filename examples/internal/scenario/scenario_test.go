package scenario

import (
	"database/sql"
	"os"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/servers"
)

var urls = make(map[string]string)

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) {
		urls["Postgres"] = servers.AnyPostgres(tb, "fsync = off").URL()
		urls["MariaDB"] = servers.AnyMariaDB(tb, "innodb_flush_method = nosync").URL()
	}))
}

// The example recognises a duplicate and a deadlock as the servers report them.
func TestErrors(t *testing.T) {
	for name, url := range urls {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			d, err := Connect(ctx, url, "", 0, 4)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			exec := func(on Querier, statement string) error {
				_, err := d.Exec(ctx, on, statement)
				return err
			}
			if err := d.Create(ctx, `CREATE TABLE numbers (n int PRIMARY KEY, m int)`, `INSERT INTO numbers VALUES (1, 0), (2, 0)`); err != nil {
				t.Fatal(err)
			}
			if err := exec(d, `INSERT INTO numbers VALUES (2, 0)`); !IsDuplicate(err) || isDeadlock(err) {
				t.Errorf("%v is no duplicate, or a deadlock", err)
			}
			if rows, err := d.Exec(ctx, d, `INSERT INTO numbers VALUES (?, ?)`+d.InsertNew("n"), 2, 7); err != nil || rows != 0 {
				t.Errorf("%d rows, %v; want none inserted", rows, err)
			}
			var first, both sync.WaitGroup
			first.Add(2)
			lock := func(one, other string) (err error) {
				return d.Tx(ctx, func(tx *sql.Tx) error {
					err := exec(tx, `UPDATE numbers SET m = m + 1 WHERE n = `+one)
					first.Done()
					first.Wait()
					if err == nil {
						err = exec(tx, `UPDATE numbers SET m = m + 1 WHERE n = `+other)
					}
					return err
				})
			}
			var errs [2]error
			both.Go(func() { errs[0] = lock("1", "2") })
			both.Go(func() { errs[1] = lock("2", "1") })
			both.Wait()
			if isDeadlock(errs[0]) == isDeadlock(errs[1]) {
				t.Errorf("%v; want one deadlock", errs)
			}
		})
	}
}
