package etcdlock

import (
	"context"
	"errors"
	"sync"
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

// together is how many claims the reaper removes at once. Many have to be when etcd
// was slow, and those who have given up meanwhile could not take their claims back:
// one after the other, the last of them would keep its key for long.
const together = 32

// reap ends the claims that have run out, whose owners have gone without a release.
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
		some, next := s.due()
		for len(some) > 0 {
			if s.removeAll(some) != nil {
				next = min(next, retry)
				break
			}
			some, next = s.due()
		}
		timer.Reset(next)
	}
}

// due ends what has run out, and returns some of those that have to be removed, and
// when to look again.
func (s *Store) due() (some []*claim, next time.Duration) {
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
		if some = append(some, c); len(some) == together {
			break
		}
	}
	return some, s.armed.Sub(now)
}

// removeAll removes some claims at once.
func (s *Store) removeAll(some []*claim) error {
	errs := make([]error, len(some))
	var all sync.WaitGroup
	for i, c := range some {
		all.Go(func() { errs[i] = s.remove(c) })
	}
	all.Wait()
	return errors.Join(errs...)
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
