package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// A rule changes a book and says what to do with the change. A rule may be called several
// times, with the book from the table; only the last decision counts.
type rule func(m book.Moment, b *book.Book) (change, error)

// A change is the outcome of a rule. Grants to waiters are saved and sent in any case.
type change struct {
	keep   bool
	freed  bool        // a claim of this process has ended
	broken *book.Entry // a claim whose owner is to be notified of the Break
}

// decide lets a rule change the book of a key. decide reads and writes the row in two
// statements, and holds no lock in the database between the two. So a process paused there
// delays nobody. If the row was written in between, decide begins again.
//
// For an engine with one writer, the callers of a process decide in sequence. Otherwise most
// callers would write in vain, because their pairs of statements interleave. With many
// callers, a waiter could try until its place in the queue is lost.
func (s *Store) decide(ctx context.Context, key string, r rule) error {
	if err := s.deciding.lock(ctx); err != nil {
		return err
	}
	defer s.deciding.unlock()
	for tries := 0; ; tries++ {
		m, floor, from, err := s.load(ctx, key)
		if err != nil {
			return err
		}
		b, err := from.book(key, floor)
		if err != nil {
			return err
		}
		done, err := r(m, b)
		if !done.keep && len(b.Pushed) == 0 {
			return err
		}
		to := from
		if failed := to.fill(b, m.Now); failed != nil {
			return failed
		}
		if ended := detached.Write(ctx); ended != nil {
			return ended
		}
		won, failed := s.save(ctx, key, m, to, s.messages(key, b, done.broken))
		if failed != nil {
			return failed
		}
		if won {
			if done.freed && s.freed != nil {
				s.freed(key, b)
			}
			return err
		}
		if tries > 2 && !sleep(ctx, s.dialect.pauses.least, s.dialect.pauses.most) {
			return ctx.Err()
		}
	}
}

var errOpen = fmt.Errorf("%w: autocommit is off, so that no lock would be kept until its connection commits: set it on for these connections", driver.ErrInvalid)

// load reads a row, and the engine's clock.
func (s *Store) load(ctx context.Context, key string) (m book.Moment, floor int64, r row, err error) {
	var now, commits int64
	r, err = only(ctx, s, loadRow, false, []any{escape(key)}, func(scan Scan) (row, error) {
		var lowest, version, format, fence, since, until sql.NullInt64
		var sole, claims sql.NullString
		err := scan(&now, &commits, &lowest, &version, &format, &fence, &sole, &since, &until, &claims)
		floor = lowest.Int64
		return row{version.Int64, format.Int64, fence.Int64, sole.String, since.Int64, until.Int64, claims.String}, err
	})
	if err == nil && commits == 0 {
		err = errOpen
	}
	return book.Moment{Now: span(now), Wall: now}, floor, r, err
}

// save writes a row on the condition that the version is unchanged, sends messages with
// the write, and reports whether the condition held.
func (s *Store) save(ctx context.Context, key string, m book.Moment, r row, messages []message) (bool, error) {
	if r.version == 0 {
		// Versions begin with the time, so that no version comes twice when a row is
		// deleted and inserted again.
		n, err := s.exec(ctx, s.dialect.insert, false, escape(key), m.Wall, r.fence, r.sole, r.since, r.until, r.claims)
		if err != nil && s.dialect.duplicate != "" && s.opts.Code(err) == s.dialect.duplicate {
			return false, nil
		}
		if err == nil && s.inserted.Add(1)%tidyEvery == 0 {
			s.tidy(ctx)
		}
		return n == 1, err
	}
	args := []any{r.fence, r.sole, r.since, r.until, r.claims, escape(key), r.version}
	if len(messages) == 0 {
		n, err := s.exec(ctx, updateRow, false, args...)
		return n == 1, err
	}
	text, err := json.Marshal(messages)
	if err != nil {
		return false, err
	}
	sent, err := only(ctx, s, s.dialect.publish, false, append(args, string(text)), column[int])
	return sent > 0, err
}
