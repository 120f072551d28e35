package pglock

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/sqllock"
)

// Options say how a Store keeps its claims.
type Options struct {
	// Table is the table, or schema.table; the default is sqllock.DefaultTable.
	Table string

	// Listen is how to connect for notifications. The default is as the pool
	// connects. Set it if the pool connects to a pooler. The pool's BeforeConnect
	// may change a copy of either, for example the password, before each
	// connection.
	Listen *pgx.ConnConfig
}

// A Store keeps claims in a table and wakes claims in line. Make one with
// [New].
type Store struct {
	*sqllock.Pushing
	close func() // what Open has made
}

var (
	_ driver.Store     = (*Store)(nil)
	_ driver.Watcher   = (*Store)(nil)
	_ driver.Notifier  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
	_ driver.Creator   = (*Store)(nil)
)

// New returns a store in a table of the database of pool, which
// [sqllock.Store.Create] makes. It does no I/O, and never closes the pool. opts
// may be nil.
//
// A call takes a connection of the pool for the time of a statement, which may be up to
// a second longer than its caller stays: see [sqllock.New]. Whoever waits for a lock has
// none of the pool's: one connection beside it listens for all. Renewals need one, too.
// Those who ask for locks leave them one, if the pool has several. Locks are lost if
// others, such as transactions, keep all of them for a TTL.
func New(pool *pgxpool.Pool, opts *Options) *Store {
	if opts == nil {
		opts = &Options{}
	}
	config := pool.Config()
	at := opts.Listen
	if at == nil {
		at = config.ConnConfig
	}
	rows := sqllock.NewClient(&client{pool: pool}, sqllock.Postgres, &sqllock.Options{Table: opts.Table})
	return &Store{Pushing: rows.Pushing(newListener(at, config.BeforeConnect)), close: func() {}}
}

// A beforeConnect changes how to connect, as [pgxpool.Config.BeforeConnect] does.
// It may be nil.
type beforeConnect func(context.Context, *pgx.ConnConfig) error

// copy returns a changed copy of config.
func (before beforeConnect) copy(ctx context.Context, config *pgx.ConnConfig) (*pgx.ConnConfig, error) {
	config = config.Copy()
	if before == nil {
		return config, nil
	}
	return config, before(ctx, config)
}

// Close ends the connection that listens. Claims stand until they run out.
func (s *Store) Close() error {
	err := s.Pushing.Close()
	s.close()
	return err
}

// pooled reports whether something between this process and the server hands
// out the server's connections: then the process id that the server told at the
// start is not that of the process that answers.
func pooled(ctx context.Context, conn *pgx.Conn) (bool, error) {
	var pid uint32
	// Not prepared: a pooler may pass the next statement to another server.
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid)
	return pid != conn.PgConn().PID(), err
}
