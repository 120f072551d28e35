package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Why an error is final.
const (
	missing   = "there is no table %s as this version needs it: make it once with \"holdfast init --store URL\" or Store.Create"
	other     = "the table %s is not one of this package's: choose another name"
	forbidden = "the database does not let this user write the table %s: grant it SELECT, INSERT, UPDATE and DELETE on it"
	old       = "the database does not understand what the table %s needs: is its version one that the documentation names?"
)

// statement makes one of a text, and adds the time to the arguments of an
// engine without a clock.
func (s *Store) statement(text string, args []any) (string, []any) {
	compiled := s.compile(text)
	if s.dialect.clock != "" && len(compiled) > len(s.dialect.clock) && compiled[:len(s.dialect.clock)] == s.dialect.clock {
		args = append([]any{s.opts.Clock().UnixMicro()}, args...)
	}
	return compiled, args
}

// A runner is a database, or a statement prepared for it.
type runner struct {
	query func(ctx context.Context, args ...any) (*sql.Rows, error)
	exec  func(ctx context.Context, args ...any) (sql.Result, error)
}

// runner returns what runs a statement. Those with lists are many, and not
// prepared.
func (s *Store) runner(ctx context.Context, text string, keep bool) (runner, error) {
	if !s.dialect.prepares || !keep {
		return runner{
			query: func(ctx context.Context, args ...any) (*sql.Rows, error) {
				return s.db.QueryContext(ctx, text, args...)
			},
			exec: func(ctx context.Context, args ...any) (sql.Result, error) {
				return s.db.ExecContext(ctx, text, args...)
			},
		}, nil
	}
	known, ok := s.prepared.Load(text)
	if !ok {
		stmt, err := s.db.PrepareContext(ctx, text)
		if err != nil {
			return runner{}, err
		}
		var loaded bool
		if known, loaded = s.prepared.LoadOrStore(text, stmt); loaded {
			stmt.Close()
		} else if s.closed.Load() {
			s.Close()
			return runner{}, errClosed
		}
	}
	stmt := known.(*sql.Stmt)
	return runner{query: stmt.QueryContext, exec: stmt.ExecContext}, nil
}

// run runs a statement, again if another was in the way. What it says about an
// error is for people.
func (s *Store) run(ctx context.Context, text string, keep bool, args []any, do func(runner, []any) error) error {
	if s.wrong != nil {
		return s.wrong
	}
	for pause := time.Millisecond; ; pause *= 2 {
		if s.closed.Load() {
			return errClosed
		}
		compiled, args := s.statement(text, args)
		r, err := s.runner(ctx, compiled, keep)
		if err == nil {
			err = do(r, args)
		}
		if err == nil {
			return nil
		}
		v := s.dialect.errors[s.opts.Code(err)]
		if v.final != "" {
			return fmt.Errorf("%w: "+v.final+": %w", driver.ErrInvalid, s.opts.Table, err)
		}
		if !v.again || !sleep(ctx, min(pause, maxPause)) {
			return err
		}
	}
}

const maxPause = 32 * time.Millisecond

// sleep sleeps for about d, and reports whether it could.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// exec runs a statement and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, text string, keep bool, args ...any) (n int64, err error) {
	err = s.run(ctx, text, keep, args, func(r runner, args []any) error {
		result, err := r.exec(ctx, args...)
		if err != nil {
			return err
		}
		n, err = result.RowsAffected()
		return err
	})
	return n, err
}

// query runs a query and calls scan for each row.
func (s *Store) query(ctx context.Context, text string, keep bool, args []any, scan func(*sql.Rows) error) error {
	return s.run(ctx, text, keep, args, func(r runner, args []any) error {
		rows, err := r.query(ctx, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return errors.Join(rows.Err(), rows.Close())
	})
}

// mint runs a statement that changes at most one row, and returns its new
// token.
func (s *Store) mint(ctx context.Context, text string, args ...any) (token int64, ok bool, err error) {
	if s.dialect.returning {
		err = s.query(ctx, text+" RETURNING fence", true, args, func(rows *sql.Rows) error {
			ok = true
			return rows.Scan(&token)
		})
		return token, ok, err
	}
	err = s.run(ctx, text, true, args, func(r runner, args []any) error {
		result, err := r.exec(ctx, args...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if err != nil || n == 0 {
			return err
		}
		ok = true
		token, err = result.LastInsertId()
		return err
	})
	return token, ok, err
}
