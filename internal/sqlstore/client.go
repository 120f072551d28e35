package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/detached"
)

// A Client runs statements, each of which commits by itself. [New] makes a Client from a
// database; other packages bring a faster Client for their engine. The context of a
// statement of Acquire ends with the caller's context, or with the last of several callers.
type Client interface {
	// Query runs a statement and calls each for every row of the result.
	Query(ctx context.Context, st Statement, each func(Scan) error) error

	// Exec runs a statement that returns no rows.
	Exec(ctx context.Context, st Statement) (Result, error)

	// Conns is the maximum number of connections at present, 0 for no limit. Conns
	// returns at once. If there are several connections, Acquire leaves one to other
	// calls.
	Conns() int

	Close() error
}

// Scan copies the values of a row.
type Scan func(dest ...any) error

// A Statement is SQL for the engine.
type Statement struct {
	Text string
	Args []any
	Once bool // the statement will hardly come again, so preparing is of no use
}

// A Result describes the effect of a statement.
type Result struct {
	Rows int64
	ID   int64 // the last inserted id, if the engine returns one
}

// A database is the Client of a *sql.DB.
type database struct {
	db       *sql.DB
	prepares bool
	unbroken bool
	prepared sync.Map // *sql.Stmt by text
	closed   atomic.Bool

	calls detached.Runner // see Dialect.unbroken
	sent  atomic.Uint64
}

// Client returns a Client that runs statements on db and never closes db.
func (d *Dialect) Client(db *sql.DB) Client {
	return &database{db: db, prepares: d.prepares, unbroken: d.unbroken}
}

// Conns reads the limit on every call, because the limit of db may change at any time.
func (d *database) Conns() int { return d.db.Stats().MaxOpenConnections }

// begin returns the context of a statement. Once the statement of a detached call waits for a
// connection, the statement runs to its end. So begin first waits for a spare connection.
func (d *database) begin(ctx context.Context) (sent context.Context, err error) {
	if !detached.Runs(ctx) {
		return ctx, nil
	}
	if err := d.spare(ctx); err != nil {
		return nil, err
	}
	return detached.Sent(ctx), nil
}

// spare waits for a spare connection. Other users of db may take the connection before
// the statement does. The statement then waits for the next connection, as long as a
// detached call may take.
func (d *database) spare(ctx context.Context) error {
	if use := d.db.Stats(); use.MaxOpenConnections == 0 || use.InUse < use.MaxOpenConnections {
		return nil
	}
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (d *database) Query(ctx context.Context, st Statement, each func(Scan) error) error {
	if !d.unbroken || detached.Runs(ctx) {
		return d.query(ctx, st, each)
	}
	var mu sync.Mutex
	left := false // each belongs to the caller
	_, err := toEnd(ctx, d, func(ctx context.Context) (Result, error) {
		return Result{}, d.query(ctx, st, func(scan Scan) error {
			mu.Lock()
			defer mu.Unlock()
			if left {
				return context.Canceled
			}
			return each(scan)
		})
	})
	mu.Lock()
	left = true
	mu.Unlock()
	return err
}

// toEnd runs a statement to its end, even if its caller leaves.
func toEnd(ctx context.Context, d *database, run func(context.Context) (Result, error)) (Result, error) {
	return detached.Do(ctx, &d.calls, strconv.FormatUint(d.sent.Add(1), 10), func(ctx context.Context) (Result, error) {
		if err := detached.Write(ctx); err != nil {
			return Result{}, err
		}
		return run(ctx)
	})
}

func (d *database) query(ctx context.Context, st Statement, each func(Scan) error) error {
	ctx, err := d.begin(ctx)
	if err != nil {
		return err
	}
	stmt, err := d.prepare(ctx, st)
	if err != nil {
		return err
	}
	var rows *sql.Rows
	if stmt != nil {
		rows, err = stmt.QueryContext(ctx, st.Args...)
	} else {
		rows, err = d.db.QueryContext(ctx, st.Text, st.Args...)
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows.Scan); err != nil {
			return err
		}
	}
	return errors.Join(rows.Err(), rows.Close())
}

func (d *database) Exec(ctx context.Context, st Statement) (Result, error) {
	if !d.unbroken || detached.Runs(ctx) {
		return d.exec(ctx, st)
	}
	return toEnd(ctx, d, func(ctx context.Context) (Result, error) { return d.exec(ctx, st) })
}

func (d *database) exec(ctx context.Context, st Statement) (Result, error) {
	ctx, err := d.begin(ctx)
	if err != nil {
		return Result{}, err
	}
	stmt, err := d.prepare(ctx, st)
	if err != nil {
		return Result{}, err
	}
	var result sql.Result
	if stmt != nil {
		result, err = stmt.ExecContext(ctx, st.Args...)
	} else {
		result, err = d.db.ExecContext(ctx, st.Text, st.Args...)
	}
	if err != nil {
		return Result{}, err
	}
	var r Result
	if r.Rows, err = result.RowsAffected(); err != nil {
		return r, err
	}
	r.ID, _ = result.LastInsertId() // Postgres has none.
	return r, nil
}

// prepare returns a cached prepared statement, nil if st needs no preparing.
func (d *database) prepare(ctx context.Context, st Statement) (*sql.Stmt, error) {
	if !d.prepares || st.Once {
		return nil, nil
	}
	known, ok := d.prepared.Load(st.Text)
	if !ok {
		stmt, err := d.db.PrepareContext(ctx, st.Text)
		if err != nil {
			return nil, err
		}
		var loaded bool
		if known, loaded = d.prepared.LoadOrStore(st.Text, stmt); loaded {
			stmt.Close()
		} else if d.closed.Load() {
			return nil, errors.Join(errClosed, d.Close())
		}
	}
	return known.(*sql.Stmt), nil
}

// Close closes the prepared statements. The database stays open. Statements without a caller
// run to their end first.
func (d *database) Close() error {
	d.closed.Store(true)
	d.calls.Close()
	var errs []error
	d.prepared.Range(func(text, stmt any) bool {
		d.prepared.Delete(text)
		errs = append(errs, stmt.(*sql.Stmt).Close())
		return true
	})
	return errors.Join(errs...)
}
