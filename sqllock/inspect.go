package sqllock

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// Holders implements [driver.Inspector].
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	m, floor, r, err := s.load(ctx, key)
	if err != nil {
		return nil, err
	}
	b, err := r.book(floor)
	if err != nil {
		return nil, err
	}
	return b.Holders(m.Now), nil
}

// Keys implements [driver.Inspector]. Keys reads some hundred rows at a time, and holds
// no connection in between.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix, from := escape(prefix), escape(prefix)
		for {
			keys, last, err := s.page(ctx, from)
			if err != nil {
				yield("", err)
				return
			}
			for _, key := range keys {
				if !strings.HasPrefix(key, prefix) || !yield(unescape(key), nil) {
					return
				}
			}
			if last == "" || !strings.HasPrefix(last, prefix) {
				return
			}
			from = last + "\x01" // the next possible name, since names have no NUL
		}
	}
}

// page returns the names of live keys in order, and the last name read, "" at the end.
func (s *Store) page(ctx context.Context, from string) (live []string, last string, err error) {
	rows, err := query(ctx, s, listRows, false, []any{from}, readEntry)
	for _, e := range rows {
		last = e.name
		if e.book.Live(e.now) {
			live = append(live, e.name)
		}
	}
	return live, last, err
}

// An entry is a row with its name, as of now.
type entry struct {
	now  time.Duration
	name string
	book *book.Book
}

func readEntry(scan Scan) (e entry, err error) {
	var now int64
	var r row
	if err := scan(&now, &e.name, &r.version, &r.fence, &r.sole, &r.since, &r.until, &r.claims); err != nil {
		return e, err
	}
	e.now = span(now)
	e.book, err = r.book(0)
	return e, err
}

// Break implements [driver.Inspector].
func (s *Store) Break(ctx context.Context, key, id string) error {
	return s.decide(ctx, key, func(m book.Moment, b *book.Book) (change, error) {
		e, err := b.Break(m, id)
		return change{keep: err == nil, broken: &e}, err
	})
}
