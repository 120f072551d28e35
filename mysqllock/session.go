package mysqllock

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/session"
)

// DefaultSessionTable is the default table of [SessionOptions].
const DefaultSessionTable = "holdfast_fence"

// SessionOptions say how a [Session] keeps its claims.
type SessionOptions struct {
	// Table is the name of the table that gives the fencing tokens, or schema.table, of
	// letters, digits and _. The default is DefaultSessionTable. Keys in two tables are
	// separate, as in lease mode: processes that are to exclude each other must use the
	// same table.
	Table string

	// Poll lets waiters try 20 times a second instead of waiting in GET_LOCK, which takes up to
	// four more connections.
	Poll bool
}

// A Session is a store with claims that are GET_LOCK locks of one connection. Make one with
// [NewSession].
//
// # How it works
//
// The first claim opens the connection. A claim is GET_LOCK of a hash of the table's name
// and the key. In the same round trip, the store updates one of 64 small rows for the
// fencing token. Locks that a process requests at the same time share the round trip and the
// commit. Up to four more connections of a process wait in GET_LOCK for locks that others hold:
// first for a turn, and then for the door of the lock, which its holder has, too. So a release wakes
// one of the waiters, within milliseconds. The turn also shows the holder that others want the key.
// Waiters without one of the connections poll. The server ends the connection after a silence of the
// longest TTL of the held locks and a little more, in whole seconds (wait_timeout). One ping keeps
// all locks.
//
// # What it promises
//
//   - Mutual exclusion as long as the server does not restart or fail over. The promise
//     needs no clock: the clock of the server may step at will.
//   - The locks of a dead process are released at once. The locks of a paused or cut-off
//     process are released when the server has not heard of the process for the TTL and up
//     to two seconds. The process has ended its own locks by then.
//   - Fencing tokens that grow with every grant of a key, also over a crash of the server,
//     as far as the server keeps commits (innodb_flush_log_at_trx_commit). Tokens begin at
//     the microseconds of the server's clock. They therefore survive a failover or a
//     restore from a dump, unless the clock is behind by then.
//
// # What can go wrong
//
//   - Only exclusive locks. Readers and slots are refused, and so is a lock that is to
//     outlive its process (holdfast.MinHold). They need lease mode.
//   - The order is not FIFO, except within one process and mostly among processes whose waiters
//     have a connection. If a process has had the key for two to four milliseconds while others
//     wait, or for a tenth of a second while others poll, the process backs off: for up to ten milliseconds,
//     or half a second. Meanwhile TryLock is refused there, although the key may be free.
//   - A paused or cut-off process may keep the turn of a key for three seconds, and a second more
//     in GET_LOCK. Meanwhile waiters of different processes poll about once a second.
//   - The locks live in the memory of the server. A restart or a failover ends all locks.
//     Holders learn of the end from the closed connection; until then, a second process may
//     acquire the lock. The tokens tell the two holders apart. A primary may stay up after
//     a failover, but read-only. Holders then learn of the end from the next ping or
//     request, a third of the TTL later at most. Setting read_only for a moment therefore
//     ends all locks.
//   - While somebody has locked the table or its rows (LOCK TABLES, a dump, a backup), no
//     lock can be acquired. Every attempt fails after a second or two. Held locks stay, but
//     a lock with a TTL of less than three seconds may be lost.
//   - Galera has no GET_LOCK across its nodes: let all processes use the same node, or use
//     lease mode. A proxy that lends connections per statement (ProxySQL and similar) must
//     not stand between.
//   - The first connection of a store proves the server: a second connection asks for the
//     same lock with a random name, for milliseconds. If both connections acquire the lock,
//     the server is refused with [driver.ErrInvalid], as are several servers behind one
//     address, if the two connections reach two servers.
//   - MySQL before 5.7.5 releases a lock when the session acquires a second lock, and is
//     refused.
//
// # URL
//
//	mysql://user:password@host:port/database?mode=session
//
//	table=holdfast_fence   the table, or schema.table; each has keys of its own
//	wake=true              wake waiters, with up to four more connections; false: poll
//	tls and its like       as in lease mode
type Session struct {
	claims
	server   *sessionServer
	warnings []string // of the URL
}

// claims are the methods shared by the Sessions of all engines.
type claims = session.Watcher

var (
	_ driver.Store    = (*Session)(nil)
	_ driver.Watcher  = (*Session)(nil)
	_ driver.Notifier = (*Session)(nil)
	_ driver.Creator  = (*Session)(nil)
)

// span is how many tokens come with each grant, for hand-overs within a process.
const span = 64

var terms = session.Terms{
	MinTTL: time.Second,
	MaxTTL: 24 * 24 * time.Hour, // within the range of wait_timeout on every system
	Span:   span,
}

// NewSession returns a store that connects as config says. It does no I/O.
// [Session.Create] makes the table. opts may be nil. A bad name of the table is
// [driver.ErrInvalid].
func NewSession(config *mysql.Config, opts *SessionOptions) (*Session, error) {
	s := &sessionServer{config: config.Clone(), table: DefaultSessionTable}
	if opts != nil {
		s.table, s.polls = cmp.Or(opts.Table, s.table), opts.Poll
	}
	var err error
	if s.quoted, err = quoted(s.table); err != nil {
		return nil, err
	}
	return &Session{claims: session.Watcher{Store: session.New(s, terms)}, server: s}, nil
}

// openSession returns a session store after connecting to the server once.
func openSession(ctx context.Context, config *mysql.Config, opts *SessionOptions) (*Session, error) {
	s, err := NewSession(config, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	conn, err := s.server.dial(ctx, "", nil)
	if err != nil {
		return nil, err
	}
	return s, conn.Close()
}

// Create implements [driver.Creator]. It creates the table if missing. Run Create once,
// before the first lock, as a user with the right to create the table. Locking needs SELECT
// and UPDATE on the table.
func (s *Session) Create(ctx context.Context) error { return s.server.create(ctx) }

// Schema implements [driver.Creator].
func (s *Session) Schema() []string { return s.server.schema() }

// Check implements [driver.Checker]. An error that matches [driver.ErrInvalid] says that
// the table is missing or incomplete, or the server too old. Check warns of a URL that may
// send a password unencrypted.
func (s *Session) Check(ctx context.Context) ([]string, error) {
	conn, err := s.server.connect(ctx, "", nil)
	if err != nil {
		return s.warnings, err
	}
	return s.warnings, conn.Close()
}
