package mysqllock

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/canary"
)

// prove returns an error if the server behind own does not exclude: a lock that own holds is
// granted to a second connection, too. A success is remembered, so a process proves a server once.
func (s *sessionServer) prove(ctx context.Context, own *conn) error {
	if s.proved.Load() {
		return nil
	}
	dial := func() (*conn, func(), error) {
		c, err := s.dial(ctx, "", nil)
		return c, func() { _ = c.Close() }, err
	}
	compare := func(first, second *conn) error { return excludes(ctx, first, second) }
	if err := canary.Prove(own, dial, compare); err != nil {
		return err
	}
	s.proved.Store(true)
	return nil
}

// excludes lets two connections acquire a lock. The name is random, because processes prove at the
// same time.
func excludes(ctx context.Context, first, second *conn) error {
	name := "holdfast canary " + rand.Text()
	var got [3]int
	for i, ask := range []struct {
		conn *conn
		call string
	}{{first, "GET_LOCK('%s', 0)"}, {second, "GET_LOCK('%s', 0)"}, {first, "RELEASE_LOCK('%s')"}} {
		err := ask.conn.QueryRowContext(ctx, "SELECT COALESCE("+fmt.Sprintf(ask.call, name)+", -1)").Scan(&got[i])
		if err != nil {
			return err
		}
	}
	if got == [3]int{1, 0, 1} {
		return nil
	}
	var version string
	if err := first.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	return &canary.Lie{What: fmt.Sprintf("GET_LOCK of this server, version %s, does not exclude: two connections asked for the same lock and got %d, %d, want 1, 0. Either the server only looks like MySQL, or the address leads to several servers, such as the nodes of a Galera cluster: name one server, or use lease mode",
		version, got[0], got[1])}
}
