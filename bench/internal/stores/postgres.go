package stores

import (
	"context"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func postgres() Store {
	return Store{
		Name: "postgres", Title: "PostgreSQL, rows", Cost: "statements", Waiting: 100, Modules: []string{"github.com/jackc/pgx/v5"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "Holdfast, conns by default", Open: byDefault},
			{Name: "row by hand, 5 ms", Kind: Bare, Open: openPostgresRow},
			{Name: "pg_advisory_lock on pgx", Kind: Bare, Open: openAdvisory},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			p, s := startPostgres(tb, "&conns=64")
			p.Must(`CREATE TABLE bare (name text PRIMARY KEY, owner text, expires timestamptz) WITH (fillfactor = 50)`)
			return s
		},
	}
}

// postgresSession has advisory locks. The bare lock blocks in the server, which takes a
// connection for each waiter and each holder.
func postgresSession() Store {
	return Store{
		Name: "postgres-session", Title: "PostgreSQL, sessions", Cost: "statements", Waiting: 100, Modules: []string{"github.com/jackc/pgx/v5"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt},
			{Name: "pg_advisory_lock on pgx", Kind: Bare, Open: openAdvisory},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			_, s := startPostgres(tb, "&mode=session")
			return s
		},
	}
}

func startPostgres(tb servers.TB, params string) (*servers.Postgres, *Server) {
	p := servers.StartPostgres(tb, "max_connections = 1000",
		"shared_preload_libraries = 'pg_stat_statements'", "pg_stat_statements.track_planning = off")
	p.Must(`CREATE EXTENSION pg_stat_statements`)
	url := p.URL() + params
	create(tb, url)
	about := "PostgreSQL " + p.Must(`SHOW server_version`)
	for _, name := range []string{"shared_buffers", "fsync", "synchronous_commit"} {
		about += ", " + name + " " + p.Must("SHOW "+name)
	}
	return p, &Server{At: []string{url, p.URL()}, About: about, Count: func(Side) int {
		n, err := strconv.Atoi(p.Must(`SELECT sum(calls) FROM pg_stat_statements`))
		if err != nil {
			tb.Fatalf("%s: %v", p.Addr(), err)
		}
		return n
	}}
}

func newPool(url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 64 // a connection for each goroutine that locks
	return pgxpool.NewWithConfig(context.Background(), config)
}

func openPostgresRow(at []string, ttl time.Duration) (*Library, error) {
	pool, err := newPool(at[1])
	if err != nil {
		return nil, err
	}
	const (
		take = `UPDATE bare SET owner = $2, expires = clock_timestamp() + $3 WHERE name = $1 AND expires <= clock_timestamp()`
		add  = `INSERT INTO bare (name, owner, expires) VALUES ($1, '', 'epoch') ON CONFLICT DO NOTHING`
		free = `UPDATE bare SET owner = '', expires = 'epoch' WHERE name = $1 AND owner = $2`
	)
	r := &row{
		take: func(ctx context.Context, key, owner string) (bool, error) {
			tag, err := pool.Exec(ctx, take, key, owner, ttl)
			return tag.RowsAffected() == 1, err
		},
		add: func(ctx context.Context, key string) error {
			_, err := pool.Exec(ctx, add, key)
			return err
		},
		free: func(ctx context.Context, key, owner string) (bool, error) {
			tag, err := pool.Exec(ctx, free, key, owner)
			return tag.RowsAffected() == 1, err
		},
	}
	return &Library{r.lock, pool.Close}, nil
}

func openAdvisory(at []string, _ time.Duration) (*Library, error) {
	pool, err := newPool(at[1])
	if err != nil {
		return nil, err
	}
	return &Library{
		Lock: func(ctx context.Context, key string) (func() error, error) {
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return nil, err
			}
			hash := fnv.New64a()
			_, _ = hash.Write([]byte(key))
			number := int64(hash.Sum64())
			if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, number); err != nil {
				conn.Release()
				return nil, err
			}
			return func() error {
				defer conn.Release()
				var held bool
				err := conn.QueryRow(context.Background(), `SELECT pg_advisory_unlock($1)`, number).Scan(&held)
				return gone(held, err)
			}, nil
		},
		Close: pool.Close,
	}, nil
}
