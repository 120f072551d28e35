package zklock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// A watch waits for a claim to be worth asking for again.
type watch struct{ wake func(driver.Grant) }

// A notice listens for the claims that are lost.
type notice struct {
	lost func(key, id string, err error)
}

// calls are what to tell once the mutex is free: losers first, so that they hear
// of it before anyone else begins.
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

// Watch implements [driver.Watcher]. A claim that was refused is watched by the
// server already.
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

// waking returns the wakes of a claim. Call it with mu held.
func (s *Store) waking(cl *claim) (wakes []func(driver.Grant)) {
	for _, w := range s.watches[nameOf(cl.Claim)] {
		wakes = append(wakes, w.wake)
	}
	return wakes
}

// Notify implements [driver.Notifier]. It tells of claims that an operator has
// broken, and of those that have ended with their session.
func (s *Store) Notify(lost func(key, id string, err error)) (stop func()) {
	n := &notice{lost}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.notices = append(slices.Clip(s.notices), n)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notices = slices.DeleteFunc(slices.Clone(s.notices), func(other *notice) bool { return other == n })
	}
}

// round is how often the keeper looks.
const round = 100 * time.Millisecond

// keep lets the keeper run while there are claims. Call it with mu held.
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

// tend gives back the claims that have run out, and has those watched that have
// been held for a while. It reports whether there are any.
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

// guardSome has claims watched that hold. What fails is done in the next round.
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

// free gives back a claim that has run out.
func (s *Store) free(cl *claim) {
	ctx, cancel := context.WithTimeout(s.closing, time.Second)
	defer cancel()
	_ = s.release(ctx, cl) // what fails is done in the next round
	s.mu.Lock()
	defer s.mu.Unlock()
	cl.freeing = false
}
