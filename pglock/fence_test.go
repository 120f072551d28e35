package pglock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/dialect"
	"github.com/holdfast-go/holdfast/fence"
	"github.com/holdfast-go/holdfast/internal/must"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/memlock"
	"github.com/holdfast-go/holdfast/pglock"
)

// The rest of the check is tested in proof/fences.
func TestCheckFence(t *testing.T) {
	pool := connect(t, pglock.Server().Database(t).URL())
	fences := fence.SQL{Table: "fences_of_pgx"}
	makeFences(t, pool, fences)
	check := func(token uint64) error {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			return err
		}
		defer tx.Rollback(t.Context())
		if err := pglock.CheckFence(t.Context(), tx, fences, "a\x00b", token); err != nil {
			return err
		}
		return tx.Commit(t.Context())
	}
	for _, token := range []uint64{5, 5, 7} {
		if err := check(token); err != nil {
			t.Fatal(err)
		}
	}
	var outdated *fence.OutdatedError
	if err := check(6); !errors.As(err, &outdated) || outdated.Highest != 7 {
		t.Errorf("6 after 7: %v, want it refused", err)
	}
}

// Tests in proof/fences cover the part of DoFenced that fence.SQL.Do shares.
func TestDoFenced(t *testing.T) {
	pool := connect(t, pglock.Server().Database(t).URL())
	fences := fence.SQL{Table: "fences_of_do"}
	makeFences(t, pool, fences)
	exec := func(statement string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	exec(`CREATE TABLE entries (id bigint PRIMARY KEY, before bigint REFERENCES entries DEFERRABLE INITIALLY DEFERRED)`)
	locks := must.Get(holdfast.New(memlock.New(), nil))
	defer locks.Close()
	lock, err := locks.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx := lock.Context(t.Context())
	write := func(ctx context.Context, entry string, end func() error) error {
		return pglock.DoFenced(ctx, pool, fences, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO entries VALUES (`+entry+`)`); err != nil {
				return err
			}
			return end()
		})
	}
	fine, broken := func() error { return nil }, errors.New("broken")
	if err := write(ctx, "1, 1", fine); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { recover() }()
		write(ctx, "2, 1", func() error { panic(broken) })
	}()
	refused := map[string]error{
		"carries no lock": write(t.Context(), "3, 1", fine),
		"broken":          write(ctx, "4, 1", func() error { return broken }),
		"foreign key":     write(ctx, "5, 99", fine), // at the commit
		"canceled":        write(ctx, "6, 1", lock.Unlock),
		"released":        write(context.WithoutCancel(ctx), "7, 1", fine),
	}
	if lock, err = locks.Lock(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if err := pglock.CheckFence(t.Context(), pool, fences, "k", lock.Fence()+1); err != nil {
		t.Fatal(err)
	}
	refused["is outdated"] = write(lock.Context(t.Context()), "8, 1", fine)
	for want, err := range refused {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %q", err, want)
		}
	}
	var entries int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM entries`).Scan(&entries); err != nil || entries != 1 {
		t.Errorf("%d entries, %v; want the first only", entries, err)
	}
	// The pool closes a connection that was cut short in the background.
	servers.Until(t, "no connection in use", func() bool { return pool.Stat().AcquiredConns() == 0 })
}

func makeFences(t *testing.T, pool *pgxpool.Pool, fences fence.SQL) {
	t.Helper()
	fences.Dialect = dialect.Postgres
	statements, err := fences.Schema()
	if err == nil {
		_, err = pool.Exec(t.Context(), strings.Join(statements, ";\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
}
