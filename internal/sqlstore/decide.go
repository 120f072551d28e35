package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
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
	gone   bool        // a claim is not in the book, as far as the book goes
	light  bool        // may be lost in a crash of the server
	join   *book.Entry // a claim that joined the queue, if nothing else has changed
	stay   *book.Entry // a claim that stays in the queue, if nothing else has changed
	extend *book.Entry // a claim that holds for longer, if nothing else has changed
	leave  string      // the id of a claim that has left the queue, if nothing else has changed
	freed  bool        // a claim of this process has ended
	broken *book.Entry // a claim whose owner is to be notified of the Break
}

// decide lets a rule change the book of a key. decide reads and writes the row in two
// statements, and holds no lock in the database between the two. So a process paused there
// delays nobody. If a write in between may change the decision, decide begins again. If load has
// read a part of the queue and the rest may matter, decide begins again with the whole row.
//
// For an engine with one writer, the callers of a process decide in sequence. Otherwise most
// callers would write in vain, because their pairs of statements interleave. With many
// callers, a waiter could try until its place in the queue is lost.
func (s *Store) decide(ctx context.Context, key string, load loader, r rule) error {
	if err := s.deciding.lock(ctx); err != nil {
		return err
	}
	defer s.deciding.unlock()
	for tries := 0; ; tries++ {
		d, err := load(ctx, key)
		if err != nil {
			return err
		}
		expired := d.whole
		d.whole = d.whole && tries == 0
		d.change, err = r(d.from.moment(), d.book)
		if d.book.Part && (expired || d.gone || err != nil) {
			load, tries = s.load, tries-1
			continue
		}
		if !d.keep && len(d.book.Pushed) == 0 {
			return err
		}
		if ended := detached.Write(ctx); ended != nil {
			return ended
		}
		won, failed := s.save(ctx, &d)
		if failed == errPart {
			load, tries = s.load, tries-1
			continue
		}
		if failed != nil {
			return failed
		}
		if won {
			if d.freed && s.freed != nil {
				s.freed(key, d.book)
			}
			return err
		}
		if tries > 2 && !sleep(ctx, s.dialect.pauses.least, s.dialect.pauses.most) {
			return ctx.Err()
		}
	}
}

var errOpen = fmt.Errorf("%w: autocommit is off, so that no lock would be kept until its connection commits: set it on for these connections", driver.ErrInvalid)

// A state is a row as read, the highest token of the deleted rows, and the engine's clock.
type state struct {
	now, floor int64
	row
}

func (st *state) moment() book.Moment { return book.Moment{Now: span(st.now), Wall: st.now} }

// load is the loader that only reads.
func (s *Store) load(ctx context.Context, key string) (decision, error) {
	return s.loadBy(ctx, cmp.Or(s.dialect.load, loadRow), key)
}

// glance returns a loader of the part of a long queue that concerns the claim with this id.
func (s *Store) glance(id string) loader {
	if s.dialect.glance == "" {
		return s.load
	}
	return func(ctx context.Context, key string) (decision, error) {
		return s.loadBy(ctx, s.dialect.glance, key, escape(id))
	}
}

func (s *Store) loadBy(ctx context.Context, text, key string, more ...any) (decision, error) {
	st, err := only(ctx, s, text, false, append([]any{s.parameter(escape(key))}, more...), readState)
	if err != nil {
		return decision{}, err
	}
	return begin(key, st)
}

// readState reads the columns of loadRow and returnRow.
func readState(scan Scan) (state, error) {
	var now, commits int64
	var floor, version, format, fence, since, until sql.NullInt64
	var sole, claims sql.NullString
	err := scan(&now, &commits, &floor, &version, &format, &fence, &sole, &since, &until, &claims)
	if err == nil && commits == 0 {
		err = errOpen
	}
	return state{now, floor.Int64, row{version.Int64, format.Int64, fence.Int64, sole.String, since.Int64, until.Int64, claims.String}}, err
}
