package caslock

import (
	"context"
	"errors"
	"iter"
	"maps"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// Holders implements [driver.Inspector]. The time left of a claim counts from when this
// process first saw the claim, or its last renewal.
func (s *Store) Holders(ctx context.Context, key string) ([]driver.Holder, error) {
	d, err := s.enter(key)
	if err != nil {
		return nil, err
	}
	defer s.leave(d)
	v, err := s.read(ctx, d)
	if err != nil {
		return nil, err
	}
	now := s.now()
	v.sights.exact()
	return v.page.book(v.sights, now).Holders(now), nil
}

// Keys implements [driver.Inspector]. A claim whose owner has died is live until a process
// that wants the key has waited for the TTL.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if s.closing.Err() != nil {
			yield("", errClosed)
			return
		}
		var unread []error // come last, and hide no key
		yielded := make(map[string]bool)
		for r, err := range s.register.List(ctx, prefix) {
			if err != nil {
				yield("", errors.Join(append(unread, err)...))
				return
			}
			p, err := parse("", r.Data)
			if err == nil && !strings.HasPrefix(p.Key, prefix) || errors.As(err, new(*foreignError)) {
				continue
			}
			if err != nil {
				unread = append(unread, err)
			} else if !yielded[p.Key] && s.live(p) {
				yielded[p.Key] = true
				if !yield(p.Key, nil) {
					return
				}
			}
		}
		if err := errors.Join(unread...); err != nil {
			yield("", err)
		}
	}
}

// live reports whether a page has claims that stand, as far as this process has seen.
func (s *Store) live(p *page) bool {
	now, seen := s.now(), make(sights)
	s.mu.Lock()
	d := s.desks[p.Key]
	s.mu.Unlock()
	if d != nil {
		d.mu.Lock()
		maps.Copy(seen, d.sights)
		d.mu.Unlock()
	}
	seen.exact()
	return p.book(seen, now).Live(now)
}

// Break implements [driver.Inspector].
func (s *Store) Break(ctx context.Context, key, id string) error {
	var answer error
	err := s.change(ctx, key, func(v *view) { answer = v.breaks(id) })
	return errors.Join(err, answer)
}
