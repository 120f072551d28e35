package session

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch waits until a lock is worth a retry. The server knows the watch by a mark in the
// session of the watch.
type watch struct {
	wake   func(driver.Grant)
	marked *link // guarded by Store.mu
}

func ring(wakes []func(driver.Grant)) {
	for _, wake := range wakes {
		wake(driver.Grant{})
	}
}

// A Watcher is a Store whose every session is a [Pusher].
type Watcher struct{ *Store }

var _ driver.Watcher = Watcher{}

// Watch implements [driver.Watcher].
func (s Watcher) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	k, err := s.session(ctx, c)
	if err != nil {
		return nil, err
	}
	name := s.server.Name(c.Key)
	w := &watch{wake: wake}
	marked := make(chan error, 1)
	s.mu.Lock()
	if s.link != k {
		s.mu.Unlock()
		return nil, errEnded
	}
	s.watches[name] = append(s.watches[name], w)
	s.mark(k, name, w, func(err error) { marked <- err })
	s.mu.Unlock()
	select {
	case err = <-marked:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		s.unwatch(name, w)
		return nil, err
	}
	return func() { s.unwatch(name, w) }, nil
}

var errEnded = errors.New("the session with the server has ended")

// mark registers a watch with the server. Call it with mu held.
func (s *Store) mark(k *link, name string, w *watch, done func(error)) {
	w.marked = k
	k.conn.(Pusher).Watch(name, func(err error) {
		if err != nil {
			s.mu.Lock()
			if w.marked == k {
				w.marked = nil
			}
			s.mu.Unlock()
		}
		done(err)
	})
}

// rewatch registers the watches of the previous session with a new session. Call it with mu
// held, before the request for a claim that may then wait for a wake.
func (s *Store) rewatch(k *link, name string) {
	for _, w := range s.watches[name] {
		if w.marked != k {
			s.mark(k, name, w, func(error) {})
		}
	}
}

func (s *Store) unwatch(name string, w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.watches[name], w)
	if i < 0 {
		return
	}
	s.watches[name] = slices.Delete(s.watches[name], i, i+1)
	if len(s.watches[name]) == 0 {
		delete(s.watches, name)
	}
	if w.marked != nil && w.marked == s.link {
		w.marked.conn.(Pusher).Unwatch(name)
	}
	w.marked = nil
}

// wake wakes the watches of the lock of this name.
func (s *Store) wake(name string) {
	s.mu.Lock()
	wakes := s.watching(name)
	s.mu.Unlock()
	ring(wakes)
}

// watching returns the wakes of a lock. Call it with mu held.
func (s *Store) watching(name string) (wakes []func(driver.Grant)) {
	for _, w := range s.watches[name] {
		wakes = append(wakes, w.wake)
	}
	return wakes
}

// Notify implements [driver.Notifier]. It reports claims that have ended with the session.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	return s.losses.Notify(lost)
}
