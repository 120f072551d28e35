package etcdlock

import (
	"context"
	"time"
)

func (s *Store) kickReaper() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// retry is how long the reaper waits after a failure.
const retry = 200 * time.Millisecond

// reap ends the claims that have run out, one after the other: their owners have
// gone without a release, which is rare.
func (s *Store) reap() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.kick:
		case <-s.ctx.Done():
			return
		}
		c, next := s.due()
		for c != nil {
			if s.remove(c) != nil {
				next = min(next, retry)
				break
			}
			c, next = s.due()
		}
		timer.Reset(next)
	}
}

// due ends what has run out, and returns one of those that have to be removed, or
// when to look again.
func (s *Store) due() (c *claim, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for len(s.schedule) > 0 && !s.schedule[0].until.After(now) {
		s.condemn(s.schedule[0])
	}
	s.armed = now.Add(time.Hour)
	if len(s.schedule) > 0 && s.schedule[0].until.Before(s.armed) {
		s.armed = s.schedule[0].until
	}
	for c := range s.dying {
		return c, s.armed.Sub(now)
	}
	return nil, s.armed.Sub(now)
}

// remove removes a claim from etcd that is ending, if it is still of this Store.
func (s *Store) remove(c *claim) error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Second)
	defer cancel()
	s.mu.Lock()
	key, id, loose := c.Key, c.ID, c.loose
	s.mu.Unlock()
	_, err := s.erase(ctx, key, id, loose, func(p place) bool { return p.Client == s.id && !p.Left })
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
	return nil
}
