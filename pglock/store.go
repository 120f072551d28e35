package pglock

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/sqlstore"
)

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the table, or schema.table; the default is "holdfast".
	Table string

	// Listen says how to connect for notifications. The default is the pool's
	// configuration. Set Listen if the pool connects to a pooler. In both cases the pool's
	// BeforeConnect may change a copy of the configuration, for example the password,
	// before each connection.
	Listen *pgx.ConnConfig
}

// A Store keeps claims in a table and wakes waiters. Make one with [New].
type Store struct {
	*leases
	close    func()   // closes the pool that Open has made
	warnings []string // of the URL
}

// leases are claims in the rows of a table.
type leases = sqlstore.Pushing

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// New returns a store in a table of the database of pool, which Create makes. New does no
// I/O, and never closes the pool. opts may be nil.
//
// A call takes a connection of the pool for the time of a statement, which may last up to a
// second longer than the caller stays: see package sqllock. Waiters take no connection of
// the pool: one connection beside the pool listens for all waiters. Renewals need a
// connection of the pool, too; if the pool has several, Acquire leaves one to renewals.
// Locks are lost if other users of the pool, such as transactions, keep all connections for
// a TTL.
func New(pool *pgxpool.Pool, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	config := pool.Config()
	at := opts.Listen
	if at == nil {
		at = config.ConnConfig
	}
	rows, err := sqlstore.New(&client{pool: pool}, sqlstore.Postgres, &sqlstore.Options{Table: opts.Table})
	if err != nil {
		return nil, err
	}
	return &Store{leases: sqlstore.NewPushing(rows, newListener(at, config.BeforeConnect)), close: func() {}}, nil
}

// A beforeConnect changes the configuration of a connection, like
// [pgxpool.Config.BeforeConnect]. A beforeConnect may be nil.
type beforeConnect func(context.Context, *pgx.ConnConfig) error

// copy returns a changed copy of config.
func (before beforeConnect) copy(ctx context.Context, config *pgx.ConnConfig) (*pgx.ConnConfig, error) {
	config = config.Copy()
	if before == nil {
		return config, nil
	}
	return config, before(ctx, config)
}

// Create implements [driver.Creator]. Create makes the table and the view of the claims, unless
// they exist. Run Create once, as a user who may create tables.
func (s *Store) Create(ctx context.Context) error { return s.leases.Create(ctx) }

// Schema implements [driver.Creator].
func (s *Store) Schema() []string { return s.leases.Schema() }

// Close ends the connection that listens. Claims stand until they expire. The caller's
// pool stays open; pgx may take fifteen seconds to close the pool if the server does not
// answer.
func (s *Store) Close() error {
	err := s.leases.Close()
	s.close()
	return err
}

// Check implements [driver.Checker]. Check gives the warnings of package sqllock,
// and warns of a URL that may send a password unencrypted.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	warnings, err := s.leases.Check(ctx)
	return append(slices.Clip(s.warnings), warnings...), err
}

// pooled reports whether a pooler between this process and the server hands out the
// server's connections. With a pooler, the process id from the start of the connection
// differs from the id of the answering process.
func pooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	// Not prepared: a pooler may pass the next statement to a different server.
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	return pid != conn.PgConn().PID(), err
}
