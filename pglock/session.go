package pglock

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/session"
)

// DefaultSequence is the sequence if [SessionOptions] name no sequence.
const DefaultSequence = "holdfast_fence"

// SessionOptions say how a [Session] keeps its claims.
type SessionOptions struct {
	// Sequence is the name of the sequence that gives the fencing tokens, or schema.name,
	// of letters, digits and _. The default is DefaultSequence. Keys of two sequences are
	// separate, like keys of two tables in lease mode: processes that must exclude each
	// other must use the same sequence.
	Sequence string

	// BeforeConnect, if not nil, may change a copy of the configuration before each
	// connection, for example set a password that changes with time. BeforeConnect must
	// end with ctx. An error fails the connection.
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error
}

// A Session is a store whose claims are advisory locks of one connection. Make one with
// [NewSession].
//
// # How it works
//
// The first claim opens the connection. A claim is pg_try_advisory_lock on 8 bytes of
// hashes of the key and the sequence. The same statement draws the fencing token from the
// sequence. A waiting process listens on the same connection, and holds a shared advisory
// lock beside the key's. By this second lock, a release knows whether to notify waiters.
// The server ends the connection after a silence of a little more than the longest TTL of
// the held locks (idle_session_timeout). One ping for all locks keeps the connection
// alive.
//
// # What it promises
//
//   - Mutual exclusion as long as the server does not restart or fail over, and its clock does
//     not step forward.
//   - If a process dies, the server releases its locks at once. If a process is paused or
//     cut off, the server releases the locks after a silence of the TTL and a margin. The
//     margin is a tenth of the TTL or a second, whichever is less. The silence is at
//     least a second in all. The process's own locks have ended by then.
//   - Fencing tokens that grow over all keys of a sequence, with every grant, also over a
//     crash of the server. The tokens begin at the microseconds of the server's clock. So
//     tokens also grow over a failover or a restore from a dump, unless the clock is
//     behind by then.
//   - No rows, no dead rows, and no waiting for a disk.
//
// # What can go wrong
//
//   - Only exclusive locks: readers and slots are refused, and so is a lock that must
//     outlive its process (holdfast.MinHold). Use lease mode for these.
//   - Not FIFO: when a lock is released, all waiting processes try at the same time. A process
//     that locks again at once mostly comes first, and may keep the key for a millisecond at a
//     time. Within one process, waiters do queue.
//   - Two keys whose hashes have the same 64 bits exclude each other. For a million keys
//     in use at once, the chance of such a pair is 1 in 40 million.
//   - The locks live in the memory of the server. If the server restarts, or a standby
//     takes over, all locks end. Holders learn of the end from the closed connection;
//     until then, another process may acquire the lock. The tokens tell the two holders
//     apart.
//   - The server measures a silence by its wall clock. If the clock steps forward by more than
//     the silence that ends a session, the server may end a session that has just sent a
//     ping. Holders learn of the end from the closed connection, as after a restart. If the
//     clock steps back while a process is cut off, its locks stand longer, by as much.
//   - A pooler (such as PgBouncer) would spread the statements over several sessions. A
//     pooler is recognized and refused with [driver.ErrInvalid].
//   - The advisory locks of a server that only looks like PostgreSQL may lock nothing. The
//     first connection of a store proves the server: a second connection asks for the same
//     lock with a random number, for milliseconds. If the server grants both, it is refused
//     with [driver.ErrInvalid]. So is an address that leads to several servers, if the two
//     connections reach two servers.
//   - All locks share the table of max_locks_per_transaction times max_connections with
//     the rest of the database: 6,400 by default.
//   - PostgreSQL before 14 has no idle_session_timeout, and is refused.
//
// # URL
//
//	postgres://user:password@host:port/database?mode=session
//
//	sequence=holdfast_fence   the sequence, or schema.name; each has keys of its own
//	sslmode and its like      as in lease mode
type Session struct {
	claims
	server   *sessionServer
	warnings []string // of the URL
}

// claims are the methods that a Session shares with sessions of other engines.
type claims = session.Watcher

var (
	_ driver.Store    = (*Session)(nil)
	_ driver.Watcher  = (*Session)(nil)
	_ driver.Notifier = (*Session)(nil)
	_ driver.Creator  = (*Session)(nil)
)

// span is the increment of the sequence: the number of tokens of a grant, for hand-offs
// within a process. At more than 15,000 grants a second for good, tokens would outrun the
// clock's microseconds.
const span = 64

var terms = session.Terms{
	MinTTL: 100 * time.Millisecond,
	MaxTTL: 24 * 24 * time.Hour, // a limit in milliseconds has 31 bits
	Span:   span,
}

// NewSession returns a store that connects by config. config must come from
// [pgx.ParseConfig], or from a pool's Config().ConnConfig. NewSession does no I/O.
// [Session.Create] makes the sequence. opts may be nil. A bad name of the sequence is
// [driver.ErrInvalid].
func NewSession(config *pgx.ConnConfig, opts *SessionOptions) (*Session, error) {
	if opts == nil {
		opts = &SessionOptions{}
	}
	s := &sessionServer{
		config: config.Copy(), before: opts.BeforeConnect,
		sequence: cmp.Or(opts.Sequence, DefaultSequence),
	}
	var err error
	if s.quoted, err = quoted(s.sequence); err != nil {
		return nil, err
	}
	return &Session{claims: session.Watcher{Store: session.New(s, terms)}, server: s}, nil
}

// openSession returns a session store after a check that the server is there and fit for
// sessions.
func openSession(ctx context.Context, config *pgx.ConnConfig, opts *SessionOptions) (*Session, error) {
	s, err := NewSession(config, opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	conn, err := s.server.dial(ctx, "")
	if err != nil {
		return nil, err
	}
	return s, conn.Close(ctx)
}

// Create implements [driver.Creator]. Create makes the sequence, unless it exists. Run
// Create once, as a user who may create sequences, before the first lock. Users that lock
// need ALL on the sequence.
func (s *Session) Create(ctx context.Context) error { return s.server.create(ctx) }

// Schema implements [driver.Creator].
func (s *Session) Schema() []string { return []string{s.server.schema()} }

// Check implements [driver.Checker]. An error that matches [driver.ErrInvalid] says that
// the sequence is missing, or not as Create makes it. Check warns of a URL that may send
// a password unencrypted.
func (s *Session) Check(ctx context.Context) ([]string, error) {
	conn, _, err := s.server.connect(ctx, "")
	if err != nil {
		return s.warnings, err
	}
	return s.warnings, conn.Close(ctx)
}
