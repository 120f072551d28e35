package etcdlock

import (
	"context"
	"errors"
	"slices"
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

// removeLimit bounds one try to remove claims: the next one is for others, too.
const removeLimit = 2 * time.Second

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
			if s.remove(some) != nil {
				next = min(next, retry)
				break
			}
			some, next = s.due()
		}
		timer.Reset(next)
	}
}

// due ends what has run out, and takes those that have been over for longest out of
// the line of the dying, and says when to look again.
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
	n := min(len(s.dying), together)
	some, s.dying = slices.Clone(s.dying[:n]), slices.Delete(s.dying, 0, n)
	return some, s.armed.Sub(now)
}

// remove removes claims from etcd that are ending, as far as they are still of this
// Store. Those for which that fails are the last in the line of the dying.
func (s *Store) remove(some []*claim) error {
	ctx, cancel := context.WithTimeout(s.ctx, removeLimit)
	defer cancel()
	stays := func(p place) bool { return p.Client != s.id || p.Left }
	all := make([]*removal, len(some))
	s.mu.Lock()
	for i, c := range some {
		all[i] = &removal{key: c.Key, id: c.ID, bury: c.loose, spare: stays}
	}
	s.mu.Unlock()
	s.erase(ctx, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for i, c := range some {
		switch {
		case s.table[c.ID] != c: // A Release was faster.
		case all[i].err != nil:
			s.dying = append(s.dying, c)
			errs = append(errs, all[i].err)
		default:
			s.drop(c)
		}
	}
	return errors.Join(errs...)
}
