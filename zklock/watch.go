package zklock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch waits until a claim is worth a new request.
type watch struct{ wake func(driver.Grant) }

// calls are callbacks to run after the mutex is released. Losses come first, so that
// losers are notified before a new holder begins.
type calls struct {
	losses []func()
	wakes  []func(driver.Grant)
}

func (c *calls) add(other calls) {
	c.losses = append(c.losses, other.losses...)
	c.wakes = append(c.wakes, other.wakes...)
}

func (c *calls) make() {
	for _, lost := range c.losses {
		lost()
	}
	for _, wake := range c.wakes {
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

// waking returns the wake functions of a claim. Call it with mu held.
func (s *Store) waking(cl *claim) (wakes []func(driver.Grant)) {
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

// round is the interval of the keeper.
const round = 100 * time.Millisecond

// keep starts the keeper, which runs while there are claims. Call it with mu held.
func (s *Store) keep() {
	if s.keeping {
		return
	}
	s.keeping = true
	s.background.Go(func() {
		tick := time.NewTicker(round)
		defer tick.Stop()
		for s.tend() {
			select {
			case <-tick.C:
			case <-s.closing.Done():
				return
			}
		}
	})
}

// tend releases expired claims, and sets watches for held claims without a watch. It
// reports whether there are claims.
func (s *Store) tend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) == 0 {
		s.keeping = false
		return false
	}
	now := s.clock.Now()
	young := make(map[*session][]*claim)
	for _, cl := range s.claims {
		switch {
		case cl.state == lost && cl.until <= now:
			s.drop(cl)
		case cl.state != lost && cl.until <= now && !cl.freeing:
			cl.state, cl.freeing = leaving, true
			s.background.Go(func() { s.free(cl) })
		case cl.state == held && !cl.guarded && !cl.guarding:
			cl.guarding = true
			young[cl.session] = append(young[cl.session], cl)
		}
	}
	for k, claims := range young {
		s.background.Go(func() { s.guardSome(k, claims) })
	}
	return true
}

// guardSome sets watches for claims that hold. The next round retries failures.
func (s *Store) guardSome(k *session, claims []*claim) {
	ctx, cancel := context.WithTimeout(s.closing, time.Second)
	defer cancel()
	if w, err := k.guard(ctx, claims); err == nil {
		_ = w.settle(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cl := range claims {
		cl.guarding = false
	}
}

// free releases an expired claim.
func (s *Store) free(cl *claim) {
	ctx, cancel := context.WithTimeout(s.closing, time.Second)
	defer cancel()
	_ = s.release(ctx, cl) // the next round retries a failure
	s.mu.Lock()
	defer s.mu.Unlock()
	cl.freeing = false
}
