package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/errand"
)

// A Client runs statements, each of which commits by itself. [New] makes one of
// a database; others make their own where that is faster. The context of a statement
// of Acquire ends with the caller's.
type Client interface {
	// Query runs a statement and calls each for every row that it returns.
	Query(ctx context.Context, st Statement, each func(Scan) error) error

	// Exec runs a statement that returns no rows.
	Exec(ctx context.Context, st Statement) (Result, error)

	// Conns is how many connections they may have now, 0 for any number. It returns at
	// once. Acquire leaves one of several to the others.
	Conns() int

	Close() error
}

// Scan copies the values of a row.
type Scan func(dest ...any) error

// A Statement is SQL as the engine understands it.
type Statement struct {
	Text string
	Args []any
	Once bool // it will hardly be sent again, so that there is no use in preparing it
}

// A Result tells what a statement has changed.
type Result struct {
	Rows int64
	ID   int64 // the last that was inserted, if the engine says so
}

// A database is the Client of a *sql.DB.
type database struct {
	db       *sql.DB
	prepares bool
	prepared sync.Map // *sql.Stmt by text
	closed   atomic.Bool
}

// Client returns what runs statements on db, and never closes it.
func (d *Dialect) Client(db *sql.DB) Client {
	return &database{db: db, prepares: d.prepares}
}

// Conns is asked again and again, since db's limit may be set at any time.
func (d *database) Conns() int { return d.db.Stats().MaxOpenConnections }

// begin returns the context of a statement. That of an errand comes to its end once it
// waits for a connection. So it is begun when there is one to spare.
func (d *database) begin(ctx context.Context) (sent context.Context, err error) {
	if !errand.Runs(ctx) {
		return ctx, nil
	}
	if err := d.spare(ctx); err != nil {
		return nil, err
	}
	return errand.Sent(ctx), nil
}

// spare waits until a connection is to spare. Others who use db may take it before the
// statement does, which then waits for the next, for as long as errands may take.
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

// prepare returns a statement that is prepared once, nil if it need not be.
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

// Close gives back what was prepared. The database stays open.
func (d *database) Close() error {
	d.closed.Store(true)
	var errs []error
	d.prepared.Range(func(text, stmt any) bool {
		d.prepared.Delete(text)
		errs = append(errs, stmt.(*sql.Stmt).Close())
		return true
	})
	return errors.Join(errs...)
}
