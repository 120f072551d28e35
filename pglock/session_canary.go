package pglock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/driver"
)

// prove returns an error if the server behind first does not exclude: an advisory lock that
// first holds is granted to a second connection, too. A success is remembered, so a process
// proves a server once. The key is random, because processes prove at the same time.
func (s *sessionServer) prove(ctx context.Context, first *pgconn.PgConn) error {
	if s.proved.Load() {
		return nil
	}
	second, err := s.dial(ctx, "")
	if err != nil {
		return err
	}
	key := strconv.FormatInt(int64(rand.Uint64()), 10)
	err = excludes(ctx, first, second, key)
	if err == nil {
		s.proved.Store(true)
	}
	return errors.Join(err, second.Close(ctx))
}

func excludes(ctx context.Context, first, second *pgconn.PgConn, key string) error {
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
	return fmt.Errorf("%w: the advisory locks of this server, %s, do not exclude: two connections asked for the same lock and got %s, want true, false. Either the server only looks like PostgreSQL, as CockroachDB does, or the address leads to several servers: name one PostgreSQL server",
		driver.ErrInvalid, row[0], strings.NewReplacer("t", "true", "f", "false").Replace(got[0]+", "+got[1]))
}
