package zklock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch waits until a claim is worth a new request.
type watch struct{ wake func(driver.Grant) }

// notices are callbacks to run after the mutex is released. Losses come first, so that
// the losers are notified before a new holder begins.
type notices struct {
	losses []func()
	wakes  []func(driver.Grant)
}

func (n *notices) add(other notices) {
	n.losses = append(n.losses, other.losses...)
	n.wakes = append(n.wakes, other.wakes...)
}

func (n *notices) send() {
	for _, lost := range n.losses {
		lost()
	}
	for _, wake := range n.wakes {
		wake(driver.Grant{})
	}
}

// Watch implements [driver.Watcher]. After a refusal, the server already watches the
// nodes for the claim.
func (s *Store) Watch(_ context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	w, name := &watch{wake}, nameOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.watches[name] = append(s.watches[name], w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches[name] = slices.DeleteFunc(s.watches[name], func(other *watch) bool { return other == w })
		if len(s.watches[name]) == 0 {
			delete(s.watches, name)
		}
	}, nil
}

// wakingLocked returns the wake functions of a claim.
func (s *Store) wakingLocked(cl *claim) (wakes []func(driver.Grant)) {
	for _, w := range s.watches[nameOf(cl.Claim)] {
		wakes = append(wakes, w.wake)
	}
	return wakes
}

// Notify implements [driver.Notifier]. The store notifies of claims broken by an
// operator, and of claims that ended with their session.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	return s.losses.Notify(lost)
}

// cleanInterval is the interval of the cleaner.
const cleanInterval = 100 * time.Millisecond

// startCleanerLocked starts the cleaner, unless it is running. The cleaner runs while there
// are claims.
func (s *Store) startCleanerLocked() {
	if s.cleanerRuns {
		return
	}
	s.cleanerRuns = true
	s.background.Go(func() {
		tick := time.NewTicker(cleanInterval)
		defer tick.Stop()
		for s.clean() {
			select {
			case <-tick.C:
			case <-s.closing.Done():
				return
			}
		}
	})
}

// clean releases expired claims, and sets watches for held claims without a watch. It
// reports whether there are claims.
func (s *Store) clean() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) == 0 {
		s.cleanerRuns = false
		return false
	}
	now := s.clock.Now()
	unwatched := make(map[*session][]*claim)
	for _, cl := range s.claims {
		switch {
		case cl.state == lost && cl.until <= now:
			s.dropLocked(cl)
		case cl.state != lost && cl.until <= now && !cl.cleaning:
			cl.state, cl.cleaning = ending, true
			s.background.Go(func() { s.releaseExpired(cl) })
		case cl.state == held && !cl.watches.node && !cl.rewatching:
			cl.rewatching = true
			unwatched[cl.session] = append(unwatched[cl.session], cl)
		}
	}
	for k, claims := range unwatched {
		s.background.Go(func() { s.rewatch(k, claims) })
	}
	return true
}

// rewatch sets watches for claims that hold. The next clean retries failures.
func (s *Store) rewatch(k *session, claims []*claim) {
	ctx, cancel := context.WithTimeout(s.closing, time.Second)
	defer cancel()
	if w, err := k.watchNodes(ctx, claims); err == nil {
		_ = w.wait(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cl := range claims {
		cl.rewatching = false
	}
}

// releaseExpired releases an expired claim.
func (s *Store) releaseExpired(cl *claim) {
	ctx, cancel := context.WithTimeout(s.closing, time.Second)
	defer cancel()
	_ = s.release(ctx, cl) // the next clean retries a failure
	s.mu.Lock()
	defer s.mu.Unlock()
	cl.cleaning = false
}
