package memlock

import (
	"context"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/driver"
)

// Holders implements [driver.Inspector].
func (s *Store) Holders(_ context.Context, key string) ([]driver.Holder, error) {
	sp := s.space
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if sh := sp.shelves[key]; sh != nil {
		return sh.Holders(sp.momentLocked().Now), nil
	}
	return nil, nil
}

// Keys implements [driver.Inspector]. The keys are those present when the sequence begins.
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
	sp := s.space
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	now := sp.momentLocked().Now
	for key, sh := range sp.shelves {
		if strings.HasPrefix(key, prefix) && sh.Live(now) {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// Break implements [driver.Inspector].
func (s *Store) Break(_ context.Context, key, id string) error {
	sp := s.space
	sp.mu.Lock()
	if s.closed {
		sp.mu.Unlock()
		return errClosed
	}
	m := sp.momentLocked()
	sh := sp.take(m, key)
	broken, err := sh.Break(m, id)
	calls := sp.put(sh, err == nil, nil)
	owner := sp.stores[broken.Session] // nil unless a claim of an open Store was broken
	sp.mu.Unlock()
	// Notify the loser first, before a waiter is woken.
	if owner != nil {
		owner.losses.Tell(key, broken.ID, driver.ErrBroken)
	}
	ring(calls)
	return err
}
