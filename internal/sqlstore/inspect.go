package sqlstore

import (
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/detached"
)

// Holders implements [driver.Inspector].
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	return aside(ctx, s, func(ctx context.Context) ([]driver.Holder, error) {
		d, err := s.load(ctx, key)
		if err != nil {
			return nil, err
		}
		return d.book.Holders(d.from.moment().Now), nil
	})
}

// Keys implements [driver.Inspector]. Keys reads some hundred rows at a time, and holds
// no connection in between.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix, from := escape(prefix), escape(prefix)
		var unread []error // come last, and hide no key
		for more := true; more; {
			rows, err := aside(ctx, s, func(ctx context.Context) ([]entry, error) {
				return query(ctx, s, listRows, false, []any{s.parameter(from)}, readEntry)
			})
			if err != nil {
				yield("", err)
				return
			}
			more = false
			for _, e := range rows {
				from = e.name + "\x01" // the next possible name, since names have no NUL
				if more = strings.HasPrefix(e.name, prefix); !more {
					break
				}
				if e.err != nil {
					unread = append(unread, e.err)
				} else if e.book.Live(e.now) && !yield(unescape(e.name), nil) {
					return
				}
			}
		}
		if err := errors.Join(unread...); err != nil {
			yield("", err)
		}
	}
}

// An entry is a row with its name, as of now.
type entry struct {
	now     time.Duration
	name    string
	version int64
	book    *book.Book
	err     error // why there is no book; other rows can be read
}

func readEntry(scan Scan) (e entry, err error) {
	var now int64
	var r row
	if err := scan(&now, &e.name, &r.version, &r.format, &r.fence, &r.sole, &r.since, &r.until, &r.claims); err != nil {
		return e, err
	}
	e.now, e.version = span(now), r.version
	e.book, e.err = r.book(unescape(e.name), 0)
	return e, nil
}

// Break implements [driver.Inspector].
func (s *Store) Break(ctx context.Context, key, id string) error {
	_, err := aside(ctx, s, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.decide(ctx, key, s.load, func(m book.Moment, b *book.Book) (change, error) {
			e, err := b.Break(m, id)
			return change{keep: err == nil, broken: &e}, err
		})
	})
	return err
}

// aside runs a call that must not take the connection of renewals, as Acquire must not. Only
// an abandoned statement that runs to its end could.
func aside[T any](ctx context.Context, s *Store, do func(context.Context) (T, error)) (T, error) {
	if !s.dialect.unbroken {
		return do(ctx)
	}
	return detached.Do(ctx, &s.calls, rand.Text(), do)
}
