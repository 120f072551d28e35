package mysqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/backoff"
	"github.com/holdfast-go/holdfast/internal/session"
)

// A sessionConn is a session with MySQL or MariaDB. One goroutine sends the requests of
// callers, one after the other: the client allows one request at a time.
type sessionConn struct {
	conn   *conn
	table  string // quoted
	events session.Events
	limit  time.Duration // as last set on the server
	role   string        // read_only of the server at first

	// marks holds the marks of this session and the time of the last refusal. A mark is a
	// lock beside a lock that this session waits for. A session that frees the lock sees
	// the mark. One session at a time has the mark. Only the goroutine of the session uses
	// marks.
	marks   map[string]time.Time
	resting backoff.Keys
	brief   backoff.Keys // of locks whose next waiter acquires them within milliseconds

	waits *sessionWaits
	crowd int // how many claims were requested together last

	life   context.Context // ends with the session, with the reason as cause
	end    context.CancelCauseFunc
	notify sync.Once // events.Ending

	mu    sync.Mutex
	asked []request
	over  bool          // no more requests are served
	asks  chan struct{} // there is a new request
}

// A request is a request of one caller. Requests for locks that wait at the same time share a
// round trip, see session_batch.go.
type request struct {
	kind kind
	name string // of the lock
	wait bool   // of a Try
	ping time.Duration
	done func(token uint64, err error)
}

type kind int

const (
	pinging kind = iota
	freeing
	trying
)

var _ session.Pusher = (*sessionConn)(nil)

func newSessionConn(server *sessionServer, events session.Events) *sessionConn {
	c := &sessionConn{events: events, asks: make(chan struct{}, 1), marks: make(map[string]time.Time)}
	c.brief = backoff.Keys{Turn: briefTurn, Pause: briefPause}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.waits = newSessionWaits(c.life, server, events.Free)
	return c
}

// run serves requests until the session ends.
func (c *sessionConn) run() {
	var look <-chan time.Time // for old marks
	for c.life.Err() == nil {
		if look == nil && len(c.marks) > 0 {
			look = time.After(markTime)
		}
		select {
		case <-c.asks:
		case <-look:
			look = nil
			c.unmark(time.Now().Add(-markTime))
		case <-c.life.Done():
		}
		c.serve(c.take(false))
	}
	why := context.Cause(c.life)
	for _, r := range c.take(true) {
		r.done(0, why)
	}
	_ = c.conn.Close() // The connection has ended anyway.
	c.waits.close()
	c.events.Lost(why)
}

func (c *sessionConn) take(last bool) []request {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked, c.over = nil, last
	return asked
}

// ask queues a request for the session's goroutine.
func (c *sessionConn) ask(r request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		go r.done(0, context.Cause(c.life))
		return
	}
	c.asked = append(c.asked, r)
	select {
	case c.asks <- struct{}{}:
	default:
	}
}

// Ping implements [session.Conn].
func (c *sessionConn) Ping(limit time.Duration, done func(error)) {
	c.ask(request{kind: pinging, ping: limit, done: func(_ uint64, err error) { done(err) }})
}

// pinged sends a ping. After a failover the old primary may stay up as a read-only server; its
// locks mean nothing to the new primary.
func (c *sessionConn) pinged(limit time.Duration) error {
	if limit != c.limit {
		if err := setWaitTimeout(c.life, c.conn, limit); err != nil {
			return err
		}
		c.limit = limit
	}
	role, err := readOnly(c.life, c.conn)
	if err == nil && role != c.role {
		err = fmt.Errorf("read_only of the server was %s and is %s: another may have taken over", c.role, role)
	}
	return err
}

// reason is the error of a request as the caller may see it. When the session ends, the
// client cancels the request, and reason returns why the session has ended.
func (c *sessionConn) reason(err error) error {
	if why := context.Cause(c.life); why != nil && errors.Is(err, context.Canceled) {
		return why
	}
	return err
}

// endIf ends the session after an error.
func (c *sessionConn) endIf(err error) {
	if err != nil && c.life.Err() == nil {
		c.notify.Do(func() { c.events.Ending(err) }) // A second caller waits for the first.
		c.end(err)
	}
}

// Try implements [session.Conn].
func (c *sessionConn) Try(name string, wait bool, done func(token uint64, err error)) {
	c.ask(request{kind: trying, name: name, wait: wait, done: done})
}

// Free implements [session.Conn].
func (c *sessionConn) Free(name string, done func(error)) {
	c.ask(request{kind: freeing, name: name, done: func(_ uint64, err error) { done(err) }})
}

// markTime is how long a mark stands after the last refusal of its session: longer than a
// waiter goes without a retry.
const markTime = 2 * time.Second

// A session that others wait for in a worker leaves the key to them for briefPause after each
// briefTurn.
const (
	briefTurn  = 2 * time.Millisecond
	briefPause = 10 * time.Millisecond
)

// The session that has a lock also has its door, for which the workers of waiters wait. So no
// worker has the lock itself, and a try of a free lock is not refused.
func door(name string) string { return name + "-door" }

func turn(name string) string { return name + "-turn" }

func mark(name string) string { return name + "-wait" }

// marking is the expression that shuts the door of a lock that was acquired, and sets or removes a
// mark. The outcome of the try is in the variable taken. The value is 1 if the mark has changed.
func (c *sessionConn) marking(r request, taken string) string {
	shut := "IF(" + taken + " = 1, COALESCE(GET_LOCK('" + door(r.name) + "', 1), 0) * 0, 0)"
	switch _, marked := c.marks[r.name]; {
	case marked:
		return shut + " + COALESCE(IF(" + taken + " = 1, RELEASE_LOCK('" + mark(r.name) + "'), 0), 0)"
	case r.wait:
		return shut + " + COALESCE(IF(" + taken + " = 0, GET_LOCK('" + mark(r.name) + "', 0), 0), 0)"
	}
	return shut
}

// noteMark records the state of the mark after a try.
func (c *sessionConn) noteMark(name string, taken, changed bool) {
	_, marked := c.marks[name]
	switch {
	case taken:
		delete(c.marks, name)
	case marked || changed:
		c.marks[name] = time.Now()
	}
}

// unmark removes the marks of waiters last refused before the given time.
func (c *sessionConn) unmark(before time.Time) {
	for name, last := range c.marks {
		if !last.Before(before) {
			continue
		}
		if _, err := c.conn.ExecContext(c.life, "DO RELEASE_LOCK('"+mark(name)+"')"); err != nil {
			c.endIf(err)
			return
		}
		delete(c.marks, name)
	}
}

// try takes the lock and draws a token under the lock, in one round trip. The name can
// stand in the statements as it is: the name is hexadecimal.
func (c *sessionConn) try(r request) (token uint64, err error) {
	name := r.name
	var taken, drawn int
	var marked bool
	err = c.conn.QueryRowContext(c.life, fmt.Sprintf(`SET @taken = GET_LOCK('%s', 0);
		UPDATE %s SET fence = LAST_INSERT_ID(GREATEST(fence + %d, FLOOR(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000)))
			WHERE id = %d AND @taken = 1 AND fence BETWEEN 0 AND %d;
		SELECT @taken, ROW_COUNT(), LAST_INSERT_ID(), %s`,
		name, c.table, span, row(name), 1<<53-2*span, c.marking(r, "@taken"))).Scan(&taken, &drawn, &token, &marked)
	if err == nil {
		c.noteMark(name, taken == 1, marked)
	}
	switch {
	case err == nil && taken == 0:
		return 0, nil
	case err == nil && drawn != 1:
		err = fmt.Errorf("%w: the table %s has lost the row %d, which gives tokens, or its fence is not below 2^53, or below 0", driver.ErrInvalid, c.table, row(name))
	}
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) && slices.Contains(writeless, e.Number) {
		err = fmt.Errorf("%w: %w", errWriteless, err)
		c.endIf(err)
		return 0, err
	}
	if err != nil {
		// The token may have failed after the lock was taken.
		_, failed := c.conn.ExecContext(c.life, "DO RELEASE_LOCK('"+name+"'), RELEASE_LOCK('"+door(name)+"')")
		c.endIf(failed)
		return 0, err
	}
	return token, nil
}

// writeless are the error numbers of a server that takes no writes.
var writeless = []uint16{1290, 1792, readOnlyMode}

const readOnlyMode = 1836

// errWriteless ends a session when its server is no longer the primary.
var errWriteless = errors.New("the server takes no writes, like a replaced primary")

// errNotHeld ends a session when its locks are not as expected.
var errNotHeld = errors.New("the server says that a lock was not held")

// Watch implements [session.Pusher].
func (c *sessionConn) Watch(name string, done func(error)) {
	c.waits.watch(name)
	go done(nil)
}

// Unwatch implements [session.Pusher].
func (c *sessionConn) Unwatch(name string) { c.waits.unwatch(name) }

// Help implements [session.Conn]. Callers have nothing to do here.
func (c *sessionConn) Help(<-chan struct{}) {}

// Close implements [session.Conn].
func (c *sessionConn) Close(why error) { c.end(why) }
