package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
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
		next := s.expire()
		for some := s.doomed(); len(some) > 0; some = s.doomed() {
			err := s.remove(some)
			if next = s.expire(); err != nil {
				next = min(next, retry)
				break
			}
		}
		timer.Reset(next)
	}
}

// errRanOut is why a claim has ended that its owner did not renew, or ask for, in time.
var errRanOut = fmt.Errorf("%w: it has run out", driver.ErrLost)

// expire ends what has run out, and returns when to look again. Whoever still asks for
// such a claim, because etcd has not answered for so long, has to ask for another: this
// one must not come back.
func (s *Store) expire() (next time.Duration) {
	s.mu.Lock()
	now := s.now()
	var over []driver.Claim
	for len(s.schedule) > 0 && !s.schedule[0].until.After(now) {
		over = append(over, s.schedule[0].Claim)
		s.condemn(s.schedule[0])
	}
	s.armed = now.Add(time.Hour)
	if len(s.schedule) > 0 && s.schedule[0].until.Before(s.armed) {
		s.armed = s.schedule[0].until
	}
	next = s.armed.Sub(now)
	s.mu.Unlock()
	for _, c := range over {
		s.tell(c.Key, c.ID, errRanOut)
	}
	return next
}

// doomed takes those that have waited longest out of the line of the dying.
func (s *Store) doomed() []*claim {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.dying), together)
	some := slices.Clone(s.dying[:n])
	s.dying = slices.Delete(s.dying, 0, n)
	return some
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
