package sqlstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/rest"
)

// compiled is compile with a cache, for recurring texts.
func (s *Store) compiled(text string, once bool) string {
	if once {
		return s.dialect.settings + s.compile(text)
	}
	if known, ok := s.texts.Load(text); ok {
		return known.(string)
	}
	compiled := s.dialect.settings + s.compile(text)
	s.texts.Store(text, compiled)
	return compiled
}

// A mutex is locked by one caller at a time, in FIFO order. A nil mutex does not exclude.
type mutex chan struct{}

func (m mutex) lock(ctx context.Context) error {
	if m == nil {
		return nil
	}
	select {
	case m <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m mutex) unlock() {
	if m != nil {
		<-m
	}
}

// run runs a statement, and retries after a conflict. An error gets an explanation for
// people.
func (s *Store) run(ctx context.Context, text string, once bool, args []any, do func(Statement) error) error {
	st := Statement{Text: s.compiled(text, once), Args: args, Once: once}
	timed := s.dialect.timeless && strings.HasPrefix(st.Text, s.dialect.clock)
	if timed {
		if err := s.startClock(ctx); err != nil {
			return err
		}
	}
	if err := s.writing.lock(ctx); err != nil {
		return err
	}
	defer s.writing.unlock()
	err := s.retry(ctx, func() error {
		if s.closed.Load() {
			return errClosed
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if timed {
			st.Args = append([]any{s.now()}, args...)
		}
		return do(st)
	})
	if err == nil {
		return nil
	}
	return s.dialect.errors[s.opts.Code(err)].explain(err, s.opts.Table)
}

// retry calls do until the result is no conflict. If ctx ends first, retry returns both
// errors.
func (s *Store) retry(ctx context.Context, do func() error) error {
	pause := s.dialect.pauses
	var busy error
	for {
		err := do()
		switch {
		case s.locked(err) && ctx.Value(several{}) != nil:
			return err
		case err != nil && s.dialect.errors[s.opts.Code(err)].again:
			busy = err
		case err == nil || busy == nil || ctx.Err() == nil:
			return err
		}
		if !sleep(ctx, pause.least, pause.most) {
			return fmt.Errorf("%w: %w", ctx.Err(), busy)
		}
		pause.most = min(2*pause.most, pause.longest)
	}
}

// sleep sleeps for a random time, and returns false if ctx ends first.
func sleep(ctx context.Context, least, most time.Duration) bool {
	return rest.For(ctx, least+rand.N(most-least)) == nil
}

// parameter returns an escaped key or id as a parameter.
func (s *Store) parameter(text string) any {
	if s.dialect.octets {
		return []byte(text)
	}
	return text
}

// exec runs a statement and returns how many rows it changed.
func (s *Store) exec(ctx context.Context, text string, once bool, args ...any) (n int64, err error) {
	if s.dialect.changed != "" {
		return only(ctx, s, text+s.dialect.changed, once, args, column[int64])
	}
	err = s.run(ctx, text, once, args, func(st Statement) error {
		result, err := s.client.Exec(ctx, st)
		n = result.Rows
		return err
	})
	return n, err
}

// query runs a query and returns the results of read for all rows. Rows of a failed
// attempt are discarded.
func query[T any](ctx context.Context, s *Store, text string, once bool, args []any, read func(Scan) (T, error)) (rows []T, err error) {
	err = s.run(ctx, text, once, args, func(st Statement) error {
		rows = rows[:0]
		return s.client.Query(ctx, st, func(scan Scan) error {
			row, err := read(scan)
			rows = append(rows, row)
			return err
		})
	})
	return rows, err
}

// only is query for a statement that always returns one row.
func only[T any](ctx context.Context, s *Store, text string, once bool, args []any, read func(Scan) (T, error)) (row T, err error) {
	rows, err := query(ctx, s, text, once, args, read)
	switch {
	case err != nil:
		return row, err
	case len(rows) != 1:
		return row, fmt.Errorf("the server has returned %d rows, want 1", len(rows))
	}
	return rows[0], nil
}

// column reads a row of one value.
func column[T any](scan Scan) (value T, err error) {
	err = scan(&value)
	return value, err
}

// mint runs acquireRow.
func (s *Store) mint(ctx context.Context, t *taking) error {
	text, args := acquireRow, []any{t.tokens - 1, s.parameter(t.id), t.ttl, t.claims, s.parameter(t.key)}
	switch {
	case s.dialect.returning:
		text += " RETURNING fence"
	case s.dialect.minted != "":
		text, args = text+s.dialect.minted, append(args, s.parameter(t.key), s.parameter(t.id))
	default:
		return s.run(ctx, text, false, args, func(st Statement) error {
			result, err := s.client.Exec(ctx, st)
			if err == nil && result.Rows > 0 {
				t.last = result.ID
			}
			return err
		})
	}
	fences, err := query(ctx, s, text, false, args, column[int64])
	if err == nil && len(fences) > 0 {
		t.last = fences[0]
	}
	return err
}
