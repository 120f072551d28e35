package pglock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/internal/canary"
)

// prove returns an error if the server behind own does not exclude: an advisory lock that own
// holds is granted to a second connection, too. A success is remembered, so a process proves a
// server once.
func (s *sessionServer) prove(ctx context.Context, own *pgconn.PgConn) error {
	if s.proved.Load() {
		return nil
	}
	dial := func() (*pgconn.PgConn, func(), error) {
		conn, err := s.dial(ctx, "")
		return conn, func() { _ = conn.Close(ctx) }, err
	}
	compare := func(first, second *pgconn.PgConn) error { return excludes(ctx, first, second) }
	if err := canary.Prove(own, dial, compare); err != nil {
		return err
	}
	s.proved.Store(true)
	return nil
}

// excludes lets two connections acquire a lock. The key is random, because processes prove at the
// same time.
func excludes(ctx context.Context, first, second *pgconn.PgConn) error {
	key := strconv.FormatInt(int64(rand.Uint64()), 10)
	var got [3]string
	for i, ask := range []struct {
		conn     *pgconn.PgConn
		function string
	}{{first, "pg_try_advisory_lock"}, {second, "pg_try_advisory_lock"}, {first, "pg_advisory_unlock"}} {
		row, err := one(ctx, ask.conn, `SELECT `+ask.function+`(`+key+`)`)
		if err != nil {
			return err
		}
		got[i] = row[0]
	}
	if got == [3]string{"t", "f", "t"} {
		return nil
	}
	row, err := one(ctx, first, `SELECT version()`)
	if err != nil {
		return err
	}
	return &canary.Lie{What: fmt.Sprintf("the advisory locks of this server, %s, do not exclude: two connections asked for the same lock and got %s, want true, false. Either the server only looks like PostgreSQL, as CockroachDB does, or the address leads to several servers: name one PostgreSQL server",
		row[0], strings.NewReplacer("t", "true", "f", "false").Replace(got[0]+", "+got[1]))}
}
