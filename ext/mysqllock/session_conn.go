package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/ext/internal/session"
)

// A sessionConn is a session with MySQL or MariaDB. One goroutine sends what
// callers ask for, one after the other: the client has one request under way.
type sessionConn struct {
	conn   *conn
	table  string // quoted
	events session.Events
	limit  time.Duration // as the server was last told
	role   string        // as the server had it at first

	life context.Context // ends with the session, and says why
	end  context.CancelCauseFunc

	mu    sync.Mutex
	asked []request
	over  bool          // nothing is served any more
	more  chan struct{} // something was asked
}

// A request asks the server and tells the answer, or tells ended if that is not
// nil.
type request func(ended error)

var _ session.Conn = (*sessionConn)(nil)

func newSessionConn(events session.Events) *sessionConn {
	c := &sessionConn{events: events, more: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// run serves requests until the session ends.
func (c *sessionConn) run() {
	for c.life.Err() == nil {
		select {
		case <-c.more:
		case <-c.life.Done():
		}
		for _, r := range c.take(false) {
			r(context.Cause(c.life))
		}
	}
	why := context.Cause(c.life)
	for _, r := range c.take(true) {
		r(why)
	}
	_ = c.conn.Close() // It has ended anyway.
	c.events.Lost(why)
}

func (c *sessionConn) take(last bool) []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked, c.over = nil, last
	return asked
}

// ask lets the session's goroutine serve a request.
func (c *sessionConn) ask(r request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		go r(context.Cause(c.life))
		return
	}
	c.asked = append(c.asked, r)
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// Ping implements [session.Conn]. A primary that another has replaced may stay up
// as a server that only reads, and its locks mean nothing to the other.
func (c *sessionConn) Ping(limit time.Duration, done func(error)) {
	told := limit == c.limit
	c.limit = limit
	c.ask(func(err error) {
		if err == nil && !told {
			err = setWaitTimeout(c.life, c.conn, limit)
		}
		var role string
		if err == nil {
			role, err = readOnly(c.life, c.conn)
		}
		if err == nil && role != c.role {
			err = fmt.Errorf("read_only of the server was %s and is %s: another may have taken over", c.role, role)
		}
		c.endIf(err)
		done(err)
	})
}

func (c *sessionConn) endIf(err error) {
	if err != nil {
		c.end(err)
	}
}

// Try implements [session.Conn].
func (c *sessionConn) Try(name string, done func(token uint64, err error)) {
	c.ask(func(err error) {
		var token uint64
		if err == nil {
			token, err = c.try(name)
		}
		done(token, err)
	})
}

// try takes the lock and draws a token while it has it, in one round trip. Text
// can stand in the statements as it is: name is hexadecimal.
func (c *sessionConn) try(name string) (token uint64, err error) {
	var taken, drawn int
	err = c.conn.QueryRowContext(c.life, fmt.Sprintf(`SET @taken = GET_LOCK('%s', 0);
		UPDATE %s SET fence = LAST_INSERT_ID(GREATEST(fence + %d, FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000)))
			WHERE id = %d AND @taken = 1;
		SELECT @taken, ROW_COUNT(), LAST_INSERT_ID()`, name, c.table, span, row(name))).Scan(&taken, &drawn, &token)
	switch {
	case err == nil && taken == 0:
		return 0, nil
	case err == nil && drawn != 1:
		err = errors.New("the table " + c.table + " has lost the row that gives tokens")
	}
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) && slices.Contains(writeless, e.Number) {
		err = fmt.Errorf("%w: %w", errWriteless, err)
		c.end(err)
		return 0, err
	}
	if err != nil {
		// The token may have failed while the lock was taken.
		_, failed := c.conn.ExecContext(c.life, "DO RELEASE_LOCK('"+name+"')")
		c.endIf(failed)
		return 0, err
	}
	return token, nil
}

// writeless are the numbers of the errors of a server that takes no writes.
var writeless = []uint16{1290, 1792, readOnlyMode}

const readOnlyMode = 1836

// errWriteless is why a session ends whose server is no longer the one that counts.
var errWriteless = errors.New("the server takes no writes, as a primary does that another replaces")

// errNotHeld is why a session ends whose locks are not what we take them for.
var errNotHeld = errors.New("the server says that a lock was not held")

// Free implements [session.Conn].
func (c *sessionConn) Free(name string, done func(error)) {
	c.ask(func(err error) {
		var held bool
		if err == nil {
			err = c.conn.QueryRowContext(c.life, "SELECT COALESCE(RELEASE_LOCK('"+name+"'), 0)").Scan(&held)
		}
		if err == nil && !held {
			err = errNotHeld
		}
		c.endIf(err)
		done(err)
	})
}

// Help implements [session.Conn]. Here callers have nothing to do.
func (c *sessionConn) Help(<-chan struct{}) {}

// Close implements [session.Conn].
func (c *sessionConn) Close(why error) { c.end(why) }
