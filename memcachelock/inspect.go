package memcachelock

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/newer"
)

// Holders returns the claims on a key, as driver.Inspector describes.
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	var list []driver.Holder
	j := s.job(key)
	j.decide = func(b *book.Book, m book.Moment, _ int64) bool {
		list = b.Holders(m.Now)
		return false
	}
	s.run(ctx, []*job{j})
	for i := range list {
		list[i].Left = max(list[i].Left-grain, 0) // the rest is not promised
	}
	return list, j.err
}

// Break ends a claim, as driver.Inspector describes.
func (s *Store) Break(ctx context.Context, key, id string) error {
	var err error
	tried := false
	j := s.job(key)
	j.decide = func(b *book.Book, m book.Moment, _ int64) bool {
		_, err = b.Break(m, id)
		write := err == nil
		if tried && j.unsure != "" {
			err = nil // This call has ended the claim, but the answer was lost.
		}
		tried = tried || write
		return write
	}
	s.run(ctx, []*job{j})
	return errors.Join(j.err, err)
}

// Keys yields the keys with live claims that begin with prefix. Every server lists all
// items in its memory, so Keys is for people, not for every request.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, server := range s.servers {
			keys, err := s.keys(ctx, server, prefix)
			for _, key := range keys {
				if !yield(key, nil) {
					return
				}
			}
			if err != nil && !yield("", err) {
				return
			}
		}
	}
}

// keys returns the keys of one server, as far as found before an error.
func (s *Store) keys(ctx context.Context, server *server, prefix string) ([]string, error) {
	items, err := s.items(ctx, server, prefix)
	if err != nil {
		return nil, err
	}
	live := make([]bool, len(items))
	jobs := make([]*job, len(items))
	for i, item := range items {
		jobs[i] = &job{item: item, clock: s.opts.clock()}
		jobs[i].decide = func(b *book.Book, m book.Moment, _ int64) bool {
			live[i] = b.Live(m.Now)
			return false
		}
	}
	server.run(ctx, jobs)
	var keys []string
	var unread []error // of newer releases; they hide no other key
	for i, j := range jobs {
		switch foreign := (*foreignError)(nil); {
		case errors.As(j.err, &foreign):
		case errors.As(j.err, new(*newer.Error)):
			unread = append(unread, j.err)
		case j.err != nil:
			return keys, j.err
		case live[i] && strings.HasPrefix(j.state.key, prefix):
			keys = append(keys, j.state.key)
		}
	}
	return keys, errors.Join(unread...)
}

// items returns the names of the items of a server whose keys may begin with prefix.
func (s *Store) items(ctx context.Context, server *server, prefix string) (items []string, err error) {
	for often := 0; ; often++ {
		err = server.with(ctx, func(c *conn) error {
			items = nil
			// Dump by hash table and not by age: items move between ages meanwhile.
			return c.list("lru_crawler metadump hash", func(line string) {
				text, _, _ := strings.Cut(strings.TrimPrefix(line, "key="), " ")
				if item, err := url.PathUnescape(text); err == nil && s.opts.beginsWith(item, prefix) {
					items = append(items, item)
				}
			})
		})
		var answer serverError
		if !errors.As(err, &answer) || !strings.HasPrefix(string(answer), "BUSY") {
			slices.Sort(items)
			return slices.Compact(items), err
		}
		if err := backOff(ctx, often+1); err != nil { // another dump is under way
			return nil, err
		}
	}
}
