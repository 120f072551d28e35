package memlock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
)

// Holders implements [driver.Inspector].
func (s *Store) Holders(_ context.Context, key string) ([]driver.Holder, error) {
	p := s.space.of(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.closed.Load() {
		return nil, errClosed
	}
	if sh := p.shelves[key]; sh != nil {
		return sh.Holders(p.momentLocked().Now), nil
	}
	return nil, nil
}

// Keys implements [driver.Inspector]. The keys are read before the first is yielded, and not all at
// the same moment.
func (s *Store) Keys(_ context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, err := s.keys(prefix)
		if err != nil {
			yield("", err)
			return
		}
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

func (s *Store) keys(prefix string) (keys []string, err error) {
	for i := range s.space.parts {
		keys = s.space.parts[i].keys(prefix, keys)
	}
	if s.closed.Load() {
		return nil, errClosed
	}
	return keys, nil
}

// keys adds the keys with a prefix to all.
func (p *part) keys(prefix string, all []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.momentLocked().Now
	for key, sh := range p.shelves {
		if strings.HasPrefix(key, prefix) && sh.Live(now) {
			all = append(all, key)
		}
	}
	return all
}

// Break implements [driver.Inspector].
func (s *Store) Break(_ context.Context, key, id string) error {
	var broken book.Entry
	calls, err := s.change(key, nil, func(m book.Moment, sh *shelf) (room bool, err error) {
		broken, err = sh.Break(m, id)
		return err == nil, err
	})
	// Notify the loser first, before a waiter is woken.
	if owner := s.space.store(broken.Session); owner != nil {
		owner.losses.Tell(key, broken.ID, driver.ErrBroken)
	}
	ring(calls)
	return err
}
