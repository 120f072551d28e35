//go:build unix

package peers

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/ext/pglock"
)

// BenchmarkPostgresSession takes and gives back a lock that nobody else wants,
// beside a bare advisory lock on one connection, which has no token, no waiters
// to wake and no end.
func BenchmarkPostgresSession(b *testing.B) {
	config, err := pgx.ParseConfig(servers.PostgresURL(b))
	if err != nil {
		b.Fatal(err)
	}
	store := pglock.NewSession(config, nil)
	if err := store.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close(context.Background()) })
	one := func(sql string) {
		var ok bool
		if err := conn.QueryRow(b.Context(), sql, int64(42)).Scan(&ok); err != nil || !ok {
			b.Fatalf("%s: %v, %v", sql, ok, err)
		}
	}
	compare(b, cycles(b, locks(b, store)), func(n int) {
		for range n {
			one("SELECT pg_try_advisory_lock($1)")
			one("SELECT pg_advisory_unlock($1)")
		}
	})
}
