package sqllock

import (
	"context"
	"errors"
	"strings"
)

// Create implements [driver.Creator]. It makes the table, and the view of its
// claims that people may read, if they are not there, and brings the view up to
// date; in SQLite there is none for a moment then. Run it once, as a user who may
// create tables, before the first lock.
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

// Schema implements [driver.Creator]. It returns nothing if the name of the table
// is wrong, as all else then tells.
func (s *Store) Schema() []string {
	if s.wrong != nil {
		return nil
	}
	texts := make([]string, len(s.dialect.create))
	for i, text := range s.dialect.create {
		texts[i] = strings.TrimSpace(s.compile(text))
	}
	return texts
}

// Check implements [driver.Checker]. An error that matches [driver.ErrInvalid]
// says that there is no table, or none that this user may read, or that the
// server is too old.
func (s *Store) Check(ctx context.Context) ([]string, error) {
	if err := s.old(ctx); err != nil {
		return nil, err
	}
	if _, _, _, err := s.load(ctx, ""); err != nil {
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
	tidyEvery = 256  // new rows, after which somebody looks for old ones
	tidyMost  = 1000 // rows that are deleted then, as idleRows has it
)

// tidy deletes rows that nobody has wanted for an hour. Their highest token
// goes to the row without a name first, so that it is there by the time that a
// row is gone. What fails is left for the next time.
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
		names, highest = append(names, r.name), max(highest, r.fence)
	}
	if n, err := s.exec(ctx, raiseFloor, false, highest); err != nil || n != 1 {
		return
	}
	s.exec(ctx, expand(deleteRows, len(names)), true, append(names, highest)...)
}
