package sqlstore

import (
	"context"
	"errors"
	"strings"
)

// Create implements [driver.Creator]. Create makes the table, and the view of the claims for
// people, unless they exist, and brings the view and the compression of the claims up to date. In
// SQLite the view is missing for a moment meanwhile. Run Create once, as a user who may create
// tables, before the first lock.
func (s *Store) Create(ctx context.Context) error {
	if err := s.old(ctx); err != nil {
		return err
	}
	texts := s.dialect.create
	if s.dialect.together != "" {
		texts = []string{strings.ReplaceAll(s.dialect.together, "{create}", strings.Join(texts, ";"))}
	}
	for _, text := range texts {
		if _, err := s.exec(ctx, text, true); err != nil {
			return err
		}
	}
	return nil
}

// Schema implements [driver.Creator].
func (s *Store) Schema() []string {
	texts := make([]string, len(s.dialect.create))
	for i, text := range s.dialect.create {
		texts[i] = strings.TrimSpace(s.compile(text))
	}
	return texts
}

// Check implements [driver.Checker]. An error that matches [driver.ErrInvalid] says that
// the table is missing or not readable for this user, or that the server is too old.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	if err := s.old(ctx); err != nil {
		return nil, err
	}
	if _, err := s.load(ctx, ""); err != nil {
		return nil, err
	}
	var warnings []string
	var errs []error
	for _, text := range s.dialect.checks {
		found, err := query(ctx, s, text, true, nil, column[string])
		warnings, errs = append(warnings, found...), append(errs, err)
	}
	return warnings, errors.Join(errs...)
}

const (
	tidyEvery = 256  // new rows between two searches for old rows
	tidyMost  = 1000 // rows to delete at a time, the limit of idleRows
)

// untidy counts a new row, and reports whether it is time to tidy.
func (s *Store) untidy() bool { return s.inserted.Add(1)%tidyEvery == 0 }

// tidy deletes rows without use for an hour. Before the deletion, tidy stores the rows'
// highest token in the row without a name. A failure is left for the next time.
func (s *Store) tidy(ctx context.Context) {
	type idle struct {
		name  string
		fence int64
	}
	rows, err := query(ctx, s, idleRows, false, nil, func(scan Scan) (r idle, err error) {
		err = scan(&r.name, &r.fence)
		return r, err
	})
	if err != nil || len(rows) == 0 {
		return
	}
	var names []any
	var highest int64
	for _, r := range rows {
		names, highest = append(names, s.parameter(r.name)), max(highest, r.fence)
	}
	if n, err := s.exec(ctx, raiseFloor, false, highest, highest); err != nil || n != 1 {
		return
	}
	s.exec(ctx, expand(deleteRows, len(names)), true, append(names, highest)...)
}
