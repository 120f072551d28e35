//go:build unix

package peers

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/ext/pglock"
)

// BenchmarkPostgresSession takes and gives back a lock that nobody else wants,
// beside a bare advisory lock on one connection, which has no token, no waiters
// to wake and no end.
func BenchmarkPostgresSession(b *testing.B) {
	config, err := pgx.ParseConfig(servers.AnyPostgres(b).URL())
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

// sessionSides lock by advisory locks. The bare one blocks in the server, which
// takes a connection for each that waits.
var sessionSides = []side{
	{name: "holdfast/session", open: openSession},
	{name: "bare/advisory", open: openBareAdvisory},
}

func openSession(servers ...string) (*library, error) {
	lk, err := holdfast.Open(context.Background(), servers[0]+"&mode=session", &holdfast.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return ours(lk), nil
}

func openBareAdvisory(servers ...string) (*library, error) {
	conn, err := pgx.Connect(context.Background(), servers[0])
	if err != nil {
		return nil, err
	}
	return &library{
		lock: func(ctx context.Context, key string) (func() error, error) {
			_, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(len(key)))
			return func() error {
				_, err := conn.Exec(context.Background(), "SELECT pg_advisory_unlock($1)", int64(len(key)))
				return err
			}, err
		},
		close: func() { conn.Close(context.Background()) },
	}, nil
}

// BenchmarkPostgresSessionHandOff compares how soon a waiter in another process
// has the lock.
func BenchmarkPostgresSessionHandOff(b *testing.B) {
	url, pool := startPostgres(b)
	if err := pglock.NewSession(pool.Config().ConnConfig, nil).Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	t := handOff(b, sessionSides, url)
	b.ReportMetric(t.least("p50-us"), "p50/best-peer")
}
