package mysqllock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
)

// prove returns an error if the server behind first does not exclude: a lock that first
// holds is granted to a second connection, too. A success is remembered, so a process proves
// a server once. The name is random, because processes prove at the same time.
func (s *sessionServer) prove(ctx context.Context, first *conn) error {
	if s.proved.Load() {
		return nil
	}
	second, err := s.dial(ctx, "", nil)
	if err != nil {
		return err
	}
	err = excludes(ctx, first, second, "holdfast canary "+rand.Text())
	if err == nil {
		s.proved.Store(true)
	}
	return errors.Join(err, second.Close())
}

func excludes(ctx context.Context, first, second *conn, name string) error {
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
	return fmt.Errorf("%w: GET_LOCK of this server, version %s, does not exclude: two connections asked for the same lock and got %d, %d, want 1, 0. Either the server only looks like MySQL, or the address leads to several servers, such as the nodes of a Galera cluster: name one server, or use lease mode",
		driver.ErrInvalid, version, got[0], got[1])
}
