package session

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch waits until a lock is worth a retry.
type watch struct {
	wake       func(driver.Grant)
	registered *session // where the server knows the watch, nil if nowhere; guarded by Store.mu
}

func wakeAll(wakes []func(driver.Grant)) {
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
	registered := make(chan error, 1)
	s.mu.Lock()
	if s.current != k {
		s.mu.Unlock()
		return nil, errEnded
	}
	s.watches[name] = append(s.watches[name], w)
	s.registerLocked(k, name, w, func(err error) { registered <- err })
	s.mu.Unlock()
	select {
	case err = <-registered:
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

// registerLocked registers a watch with the server.
func (s *Store) registerLocked(k *session, name string, w *watch, done func(error)) {
	w.registered = k
	k.conn.(Pusher).Watch(name, func(err error) {
		if err != nil {
			s.mu.Lock()
			if w.registered == k {
				w.registered = nil
			}
			s.mu.Unlock()
		}
		done(err)
	})
}

// rewatchLocked registers the watches of the previous session with a new session, before
// the request for a claim that may then wait for a wake.
func (s *Store) rewatchLocked(k *session, name string) {
	for _, w := range s.watches[name] {
		if w.registered != k {
			s.registerLocked(k, name, w, func(error) {})
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
	if w.registered != nil && w.registered == s.current {
		w.registered.conn.(Pusher).Unwatch(name)
	}
	w.registered = nil
}

// wake wakes the watches of the lock of this name.
func (s *Store) wake(name string) {
	s.mu.Lock()
	wakes := s.watchingLocked(name)
	s.mu.Unlock()
	wakeAll(wakes)
}

// watchingLocked returns the wakes of a lock.
func (s *Store) watchingLocked(name string) (wakes []func(driver.Grant)) {
	for _, w := range s.watches[name] {
		wakes = append(wakes, w.wake)
	}
	return wakes
}

// Notify implements [driver.Notifier]. It reports claims that have ended with the session.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	return s.losses.Notify(lost)
}
