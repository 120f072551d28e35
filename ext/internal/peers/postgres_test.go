//go:build unix

package peers

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
	"github.com/holdfast-go/holdfast/ext/pglock"
)

// tableSides lock by rows of a table. The bare one is what people write by
// hand: a row with an owner and an expiry, two statements a lock, and a poll.
var tableSides = []side{
	{name: "holdfast/table", open: openTable},
	{name: "bare/row", open: openBareRow},
}

func openTable(servers ...string) (*library, error) {
	lk, err := holdfast.Open(context.Background(), servers[0], &holdfast.Options{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return ours(lk), nil
}

func openBareRow(servers ...string) (*library, error) {
	pool, err := pgxpool.New(context.Background(), servers[0])
	if err != nil {
		return nil, err
	}
	return bareRow(pool), nil
}

func bareRow(pool *pgxpool.Pool) *library {
	const (
		take = `INSERT INTO bare (name, owner, expires) VALUES ($1, $2, clock_timestamp() + $3)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, expires = clock_timestamp() + $3
WHERE bare.expires <= clock_timestamp()`
		free = `UPDATE bare SET owner = '', expires = 'epoch' WHERE name = $1 AND owner = $2`
	)
	return &library{
		lock: func(ctx context.Context, key string) (func() error, error) {
			owner := rand.Text()
			err := poll(ctx, longPause, func() (bool, error) {
				tag, err := pool.Exec(ctx, take, key, owner, ttl)
				return tag.RowsAffected() == 1, err
			})
			return func() error {
				tag, err := pool.Exec(context.Background(), free, key, owner)
				if err == nil && tag.RowsAffected() == 0 {
					err = errGone
				}
				return err
			}, err
		},
		close: pool.Close,
	}
}

// startPostgres starts a server with the tables of both sides.
func startPostgres(b *testing.B) (url string, pool *pgxpool.Pool) {
	b.Helper()
	url = servers.StartPostgres(b).URL()
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	if err := pglock.New(pool, nil).Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(b.Context(), `CREATE TABLE bare (name text PRIMARY KEY, owner text, expires timestamptz) WITH (fillfactor = 50)`); err != nil {
		b.Fatal(err)
	}
	return url, pool
}

// BenchmarkPostgresUncontended has one goroutine, and both sides on one pool.
func BenchmarkPostgresUncontended(b *testing.B) {
	_, pool := startPostgres(b)
	alternate(b, ours(locks(b, pglock.New(pool, nil))), bareRow(pool))
}

// BenchmarkPostgresOneKeyProcesses counts transactions, each of which is one
// statement.
func BenchmarkPostgresOneKeyProcesses(b *testing.B) {
	url, pool := startPostgres(b)
	t := oneKey(b, tableSides, url, "statements/lock", func(int) int { return statements(b, pool) })
	b.ReportMetric(t.most("locks/s"), "x-best-peer")
}

func statements(b *testing.B, pool *pgxpool.Pool) (n int) {
	// Each connection tells of what it did when it has been idle for a second.
	<-time.After(1500 * time.Millisecond)
	err := pool.QueryRow(b.Context(), `SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`,
		pgx.QueryExecModeSimpleProtocol).Scan(&n)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func BenchmarkPostgresHandOff(b *testing.B) {
	url, _ := startPostgres(b)
	t := handOff(b, tableSides, url)
	b.ReportMetric(t.least("p50-us"), "p50/best-peer")
}

// BenchmarkPostgresRenew renews 10,000 leases, 500 at a time.
func BenchmarkPostgresRenew(b *testing.B) {
	_, pool := startPostgres(b)
	store := pglock.New(pool, nil)
	b.Cleanup(func() { store.Close() })
	claims := make([]driver.Claim, 10_000)
	for i := range claims {
		claims[i] = driver.Claim{
			Key: fmt.Sprint("key", i), ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Hour,
		}
		if g, err := store.Acquire(b.Context(), claims[i]); err != nil || !g.OK {
			b.Fatal(g, err)
		}
	}
	before, n := statements(b, pool), 0
	for b.Loop() {
		for i := 0; i < len(claims); i += 500 {
			if errs := store.Renew(b.Context(), claims[i:i+500]); errs[0] != nil {
				b.Fatal(errs[0])
			}
			n++
		}
	}
	b.ReportMetric(float64(statements(b, pool)-before)/float64(n), "statements/500")
}

// BenchmarkPostgresHolder renews a lock for which 32 wait, in four clients, and
// beside it one for which nobody does.
func BenchmarkPostgresHolder(b *testing.B) {
	url, pool := startPostgres(b)
	store := pglock.New(pool, nil)
	b.Cleanup(func() { store.Close() })
	var claims []driver.Claim
	for _, key := range []string{"wanted", "unwanted"} {
		c := driver.Claim{Key: key, ID: rand.Text(), Weight: driver.MaxWeight, Limit: driver.MaxWeight, TTL: time.Minute}
		if g, err := store.Acquire(b.Context(), c); err != nil || !g.OK {
			b.Fatalf("%s: %+v, %v", key, g, err)
		}
		claims = append(claims, c)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var waiting sync.WaitGroup
	b.Cleanup(func() { cancel(); waiting.Wait() })
	refused := make(chan struct{}, 1)
	for range 4 {
		lk, err := holdfast.Open(ctx, url, &holdfast.Options{Trace: &holdfast.Trace{Tried: func(holdfast.Event) {
			select {
			case refused <- struct{}{}:
			default:
			}
		}}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { lk.Close() })
		for range 8 {
			waiting.Go(func() { lk.Lock(ctx, "wanted") })
		}
		<-refused
	}
	renew := func(c driver.Claim) func(int) {
		return func(n int) {
			for range n {
				if errs := store.Renew(b.Context(), []driver.Claim{c}); errs != nil && errs[0] != nil {
					b.Fatal(errs[0])
				}
			}
		}
	}
	compare(b, renew(claims[0]), renew(claims[1]))
}
