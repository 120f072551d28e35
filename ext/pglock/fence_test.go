package pglock_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/ext/pglock"
	"github.com/holdfast-go/holdfast/fence"
)

// The rest of the check is tested in ext/internal/fences.
func TestCheckFence(t *testing.T) {
	pool := connect(t, servers.StartPostgres(t).URL())
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

func makeFences(t *testing.T, pool *pgxpool.Pool, fences fence.SQL) {
	t.Helper()
	fences.Dialect = fence.Postgres
	statement, err := fences.Schema()
	if err == nil {
		_, err = pool.Exec(t.Context(), statement)
	}
	if err != nil {
		t.Fatal(err)
	}
}
