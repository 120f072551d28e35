package pglock_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/pglock"
)

// A session is a transaction of one of the clients.
type session interface {
	lock(ctx context.Context, key string) error
	try(ctx context.Context, key string, wait time.Duration) error
	query(ctx context.Context, query string) (string, error)
	exec(ctx context.Context, query string) error
	end(ctx context.Context, commit bool) error
}

type (
	pgxSession struct{ pgx.Tx }
	sqlSession struct{ *sql.Tx }
)

func (s pgxSession) lock(ctx context.Context, key string) error {
	return pglock.LockTx(ctx, s.Tx, key)
}

func (s sqlSession) lock(ctx context.Context, key string) error {
	return pglock.LockSQLTx(ctx, s.Tx, key)
}

func (s pgxSession) try(ctx context.Context, key string, wait time.Duration) error {
	return pglock.TryLockTx(ctx, s.Tx, key, wait)
}

func (s sqlSession) try(ctx context.Context, key string, wait time.Duration) error {
	return pglock.TryLockSQLTx(ctx, s.Tx, key, wait)
}

func (s pgxSession) query(ctx context.Context, query string) (value string, err error) {
	return value, s.QueryRow(ctx, query).Scan(&value)
}

func (s sqlSession) query(ctx context.Context, query string) (value string, err error) {
	return value, s.QueryRowContext(ctx, query).Scan(&value)
}

func (s pgxSession) exec(ctx context.Context, query string) error {
	_, err := s.Exec(ctx, query)
	return err
}

func (s sqlSession) exec(ctx context.Context, query string) error {
	_, err := s.ExecContext(ctx, query)
	return err
}

func (s pgxSession) end(ctx context.Context, commit bool) error {
	if commit {
		return s.Commit(ctx)
	}
	return s.Rollback(ctx)
}

func (s sqlSession) end(_ context.Context, commit bool) error {
	if commit {
		return s.Commit()
	}
	return s.Rollback()
}

// A bench begins transactions of one client.
type bench struct {
	*testing.T
	server *servers.Postgres
	start  func(level string) (session, error) // "" is the default level
}

// clients returns how each of them begins a transaction.
func clients(t *testing.T, url string) map[string]func(level string) (session, error) {
	pool := connect(t, url)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { db.Close() })
	levels := map[string]sql.IsolationLevel{"": 0, "repeatable read": sql.LevelRepeatableRead, "serializable": sql.LevelSerializable}
	return map[string]func(level string) (session, error){
		"pgx": func(level string) (session, error) {
			tx, err := pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.TxIsoLevel(level)})
			return pgxSession{tx}, err
		},
		"sql": func(level string) (session, error) {
			tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: levels[level]})
			return sqlSession{tx}, err
		},
	}
}

func (b *bench) begin() session { return b.beginAt("") }

func (b *bench) beginAt(level string) session {
	b.Helper()
	s, err := b.start(level)
	b.must(err)
	b.Cleanup(func() { s.end(context.Background(), false) })
	return s
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) held(err error) {
	b.Helper()
	if !errors.Is(err, holdfast.ErrHeld) {
		b.Fatalf("%v, want ErrHeld", err)
	}
}

// value returns what a statement returns.
func (b *bench) value(s session, query string) string {
	b.Helper()
	value, err := s.query(b.Context(), query)
	b.must(err)
	return value
}

// later runs f at the same time and returns its result when that is asked for.
func later(f func() error) (result func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error { return <-done }
}

// awaitWaiters returns when so many sessions wait for an advisory lock.
func (b *bench) awaitWaiters(n string) {
	b.Helper()
	looking := b.begin()
	servers.Until(b, n+" waiters", func() bool {
		return b.value(looking, `SELECT CAST(count(*) AS text) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`) == n
	})
	b.must(looking.end(b.Context(), true))
}
