package mysqllock

import (
	"context"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/session"
)

// DefaultSessionTable is the table for those who do not choose another.
const DefaultSessionTable = "holdfast_fence"

// SessionOptions say how a [Session] keeps its claims.
type SessionOptions struct {
	// Table is the name of the table that gives the fencing tokens, or
	// schema.table, of letters, digits and _. The default is DefaultSessionTable.
	// The keys of two tables are apart, as they are in lease mode: processes that
	// are to exclude each other must use the same.
	Table string
}

// A Session is a store whose claims are the locks of GET_LOCK in one connection.
// Make one with [NewSession].
//
// # How it works
//
// The first claim opens the connection. A claim is GET_LOCK of a hash of the
// table's name and the key, and in the same round trip an update of one of 64
// small rows that gives the fencing token. The server ends the connection when
// it has been silent for the longest TTL of the locks that are held and a little
// more, in whole seconds (wait_timeout), and one ping for all of them keeps it.
//
// # What it promises
//
//   - Mutual exclusion as long as the server does not restart or fail over, and
//     without a clock: the server's may step as it likes.
//   - A process that dies gives its locks back at once. One that is paused or
//     cut off gives them back when the server has not heard of it for the TTL
//     and up to two seconds, and its own locks have ended by then.
//   - Fencing tokens that grow with every grant of a key, also over a crash of
//     the server, as far as it keeps commits (innodb_flush_log_at_trx_commit).
//     They begin at the microseconds of its clock, so they also survive a
//     failover or a restore from a dump, unless the clock is behind by then.
//
// # What can go wrong
//
//   - Only exclusive locks: readers and slots are refused, and so is a lock that
//     is to outlive its process (holdfast.AtLeast). They need lease mode.
//   - Whoever waits asks again and again: the server cannot tell when a lock of
//     another connection is freed. Nor is it first come, first served, except
//     within one process.
//   - The locks live in the memory of the server. When it restarts, or another
//     takes over, all of them end: holders learn that from the closed
//     connection, and until they have, another may get in. Their tokens tell
//     them apart. If a primary stays up when another takes over, but is made
//     read-only, they learn it from the next ping or request, which is a third
//     of the TTL later at most; so setting read_only for a moment ends all locks.
//   - Galera has no GET_LOCK across its nodes: let all processes use the same
//     node, or use lease mode. A proxy that lends connections for a statement
//     (ProxySQL and its like) must not stand between.
//   - MySQL before 5.7.5 frees a lock when the session takes another, and is
//     refused.
//
// # URL
//
//	mysql://user:password@host:port/database?mode=session
//
//	table=holdfast_fence   the table, or schema.table; each has keys of its own
//	tls and its like       as in lease mode
type Session struct {
	claims
	server *sessionServer
}

// claims are the methods of a Session that another engine's has, too.
type claims = *session.Store

var (
	_ driver.Store    = (*Session)(nil)
	_ driver.Notifier = (*Session)(nil)
	_ driver.Creator  = (*Session)(nil)
)

// span is how many tokens come with each grant, for hand-offs within a process.
const span = 64

var terms = session.Terms{
	MinTTL: time.Second,
	MaxTTL: 24 * 24 * time.Hour, // what wait_timeout can be on every system
	Span:   span,
}

// NewSession returns a store that connects as config says. It does no I/O.
// [Session.Create] makes the table. opts may be nil.
func NewSession(config *mysql.Config, opts *SessionOptions) *Session {
	s := &sessionServer{config: config.Clone(), table: DefaultSessionTable}
	if opts != nil && opts.Table != "" {
		s.table = opts.Table
	}
	return &Session{session.New(s, terms), s}
}

// openSession returns a session store after it has made sure that the server is
// there and serves.
func openSession(ctx context.Context, config *mysql.Config, opts *SessionOptions) (*Session, error) {
	s := NewSession(config, opts)
	conn, err := s.server.dial(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	return s, conn.Close()
}

// Create implements [driver.Creator]. It makes the table, unless it is there. Run
// it once, as a user who may create it, before the first lock. Whoever locks
// needs SELECT and UPDATE on it.
func (s *Session) Create(ctx context.Context) error { return s.server.create(ctx) }

// Schema implements [driver.Creator]. It returns nothing if the name of the table
// is wrong, as all else then tells.
func (s *Session) Schema() []string {
	texts, err := s.server.schema()
	if err != nil {
		return nil
	}
	return texts
}

// Check implements [driver.Checker]. An error that matches [driver.ErrInvalid]
// says that the table is missing or incomplete, or the server too old.
func (s *Session) Check(ctx context.Context) ([]string, error) {
	conn, err := s.server.connect(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	return nil, conn.Close()
}
