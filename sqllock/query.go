package sqllock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// Why an error is final.
const (
	missing   = "there is no table %s as this version needs it: make it once with \"holdfast init --store URL\" or Store.Create"
	homeless  = "there is no schema, or database, in which the table %s could be: create that first"
	other     = "the table %s is not one of this package's: choose another name"
	forbidden = "this user may not do that with the table %s: locks need SELECT, INSERT, UPDATE and DELETE on it, and to make it takes the right to create tables and views"
	encoding  = "the encoding of the database has no place in the table %s for the letters of this key, owner or note: use a database with UTF-8"
	old       = "the database does not understand what the table %s needs: is its version one that the documentation names?"
)

// statement makes one of a text, with the time for an engine without a clock.
func (s *Store) statement(text string, once bool, args []any) Statement {
	st := Statement{Text: s.compiled(text, once), Args: args, Once: once}
	if s.dialect.clock != "" && strings.HasPrefix(st.Text, s.dialect.clock) {
		st.Args = append([]any{s.opts.Clock().UnixMicro()}, args...)
	}
	return st
}

// compiled is compile with a memory, for the texts that come again and again.
func (s *Store) compiled(text string, once bool) string {
	if once {
		return s.compile(text)
	}
	if known, ok := s.texts.Load(text); ok {
		return known.(string)
	}
	compiled := s.compile(text)
	s.texts.Store(text, compiled)
	return compiled
}

// run runs a statement, again if another was in the way. What it says about an
// error is for people.
func (s *Store) run(ctx context.Context, text string, once bool, args []any, do func(Statement) error) error {
	if s.wrong != nil {
		return s.wrong
	}
	for pause := time.Millisecond; ; pause *= 2 {
		if s.closed.Load() {
			return errClosed
		}
		err := do(s.statement(text, once, args))
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
func (s *Store) exec(ctx context.Context, text string, once bool, args ...any) (n int64, err error) {
	err = s.run(ctx, text, once, args, func(st Statement) error {
		result, err := s.client.Exec(ctx, st)
		n = result.Rows
		return err
	})
	return n, err
}

// query runs a query and calls each for every row.
func (s *Store) query(ctx context.Context, text string, once bool, args []any, each func(scan Scan) error) error {
	return s.run(ctx, text, once, args, func(st Statement) error { return s.client.Query(ctx, st, each) })
}

// mint runs a statement that changes at most one row, and returns its new
// token.
func (s *Store) mint(ctx context.Context, text string, args ...any) (token int64, ok bool, err error) {
	if s.dialect.returning {
		err = s.query(ctx, text+" RETURNING fence", false, args, func(scan Scan) error {
			ok = true
			return scan(&token)
		})
		return token, ok, err
	}
	err = s.run(ctx, text, false, args, func(st Statement) error {
		result, err := s.client.Exec(ctx, st)
		token, ok = result.ID, err == nil && result.Rows > 0
		return err
	})
	return token, ok, err
}
