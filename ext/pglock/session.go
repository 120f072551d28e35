package pglock

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/ext/internal/session"
)

// DefaultSequence is the sequence for those who do not choose another.
const DefaultSequence = "holdfast_fence"

// SessionOptions say how a [Session] keeps its claims.
type SessionOptions struct {
	// Sequence is the name of the sequence that gives the fencing tokens, or
	// schema.name, of letters, digits and _. The default is DefaultSequence. The
	// keys of two sequences are apart, as those of two tables are in lease mode:
	// processes that are to exclude each other must use the same.
	Sequence string

	// BeforeConnect, if it is not nil, may change a copy of the configuration
	// before each connection, for example set a password that changes with time.
	// It is to end with ctx. An error fails the connection.
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error
}

// A Session is a store whose claims are advisory locks of one connection. Make
// one with [NewSession].
//
// # How it works
//
// The first claim opens the connection. A claim is pg_try_advisory_lock on 8
// bytes of hashes of the key and the sequence, and the same statement draws the
// fencing token from the sequence. A process that waits listens on the same
// connection, and holds a shared advisory lock beside the key's, by which the
// one who unlocks knows whether to notify anybody. The server ends the
// connection when it has been silent for the longest TTL of the locks that are
// held and a little more (idle_session_timeout), and one ping for all of them
// keeps it.
//
// # What it promises
//
//   - Mutual exclusion as long as the server does not restart or fail over, and
//     without a clock: the server's may step as it likes.
//   - A process that dies gives its locks back at once. One that is paused or
//     cut off gives them back when the server has not heard of it for the TTL
//     and a tenth of it, or a second if that is less, in all a second at least. Its
//     own locks have ended by then.
//   - Fencing tokens that grow over all keys of a sequence, with every grant,
//     also over a crash of the server. They begin at the microseconds of its
//     clock, so they also survive a failover or a restore from a dump, unless the
//     clock is behind by then.
//   - No rows, no dead rows, and nothing that waits for a disk.
//
// # What can go wrong
//
//   - Only exclusive locks: readers and slots are refused, and so is a lock that
//     is to outlive its process (holdfast.AtLeast). They need lease mode.
//   - Not first come, first served: those who wait ask at the same time when a
//     lock is freed. Within one process they do stand in line.
//   - Two keys whose hashes have the same 64 bits exclude each other. Of a
//     million keys in use at once, the chance is 1 in 40 million that any two do.
//   - The locks live in the memory of the server. When it restarts, or another
//     takes over, all of them end: holders learn that from the closed
//     connection, and until they have, another may get in. Their tokens tell
//     them apart.
//   - A pooler between (PgBouncer and its like) would spread the statements over
//     several sessions. It is recognised and refused with [driver.ErrInvalid].
//   - All locks share the table of max_locks_per_transaction times
//     max_connections with the rest of the database: 6,400 by default.
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
	server *sessionServer
}

// claims are the methods of a Session that another engine's has, too.
type claims = session.Watcher

var (
	_ driver.Store    = (*Session)(nil)
	_ driver.Watcher  = (*Session)(nil)
	_ driver.Notifier = (*Session)(nil)
	_ driver.Creator  = (*Session)(nil)
)

// span is the increment of the sequence: how many tokens come with each grant,
// for hand-offs within a process. At more than 15,000 grants a second for good
// they would outrun the clock's microseconds.
const span = 64

var terms = session.Terms{
	MinTTL: 100 * time.Millisecond,
	MaxTTL: 24 * 24 * time.Hour, // in milliseconds, a limit is 31 bits
	Span:   span,
}

// NewSession returns a store that connects as config says, which must come from
// [pgx.ParseConfig], or from a pool's Config().ConnConfig. It does no I/O.
// [Session.Create] makes the sequence. opts may be nil.
func NewSession(config *pgx.ConnConfig, opts *SessionOptions) *Session {
	if opts == nil {
		opts = &SessionOptions{}
	}
	s := &sessionServer{
		config: config.Copy(), before: opts.BeforeConnect,
		sequence: cmp.Or(opts.Sequence, DefaultSequence),
	}
	return &Session{session.Watcher{Store: session.New(s, terms)}, s}
}

// openSession returns a session store after it has made sure that the server is
// there and serves.
func openSession(ctx context.Context, config *pgx.ConnConfig, opts *SessionOptions) (*Session, error) {
	s := NewSession(config, opts)
	conn, err := s.server.dial(ctx, "")
	if err != nil {
		return nil, err
	}
	return s, conn.Close(ctx)
}

// Create implements [driver.Creator]. It makes the sequence, unless it is there.
// Run it once, as a user who may create it, before the first lock. Whoever locks
// needs ALL on it.
func (s *Session) Create(ctx context.Context) error { return s.server.create(ctx) }

// Schema implements [driver.Creator]. It returns nothing if the name of the
// sequence is wrong, as all else then tells.
func (s *Session) Schema() []string {
	text, err := s.server.schema()
	if err != nil {
		return nil
	}
	return []string{text}
}

// Check implements [driver.Checker]. An error that matches [driver.ErrInvalid]
// says that the sequence is missing, or not as Create makes it.
func (s *Session) Check(ctx context.Context) ([]string, error) {
	conn, _, err := s.server.connect(ctx, "")
	if err != nil {
		return nil, err
	}
	return nil, conn.Close(ctx)
}
