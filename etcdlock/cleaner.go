package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
)

// retry is how long the cleaner waits after a failure, and longer after several.
const retry = 200 * time.Millisecond

// runCleaner ends expired claims, whose owners have gone without a release, and removes
// leftovers from etcd.
func (s *Store) runCleaner() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	for {
		select {
		case <-timer.C:
		case <-s.kick:
		case <-s.ctx.Done():
			return
		}
		next := s.expire()
		for some := s.take(); len(some) > 0; some = s.take() {
			err := s.clean(some)
			if next = s.expire(); err != nil {
				next = min(next, retry<<min(failures, maxDoublings))
				failures++
				break
			}
			failures = 0
		}
		timer.Reset(next)
	}
}

// errRanOut is why a claim has ended whose owner did not renew or request it in time.
var errRanOut = fmt.Errorf("%w: it has run out", driver.ErrLost)

// expire ends expired claims, and returns when to check again. A caller still
// requesting an expired claim, after a long silence of etcd, must request a new claim.
// The expired claim must not come back.
func (s *Store) expire() (next time.Duration) {
	s.mu.Lock()
	now := s.now()
	over := make(map[string]string)
	for len(s.schedule) > 0 && !s.schedule[0].until.After(now) {
		c := s.schedule[0]
		over[c.ID] = c.key
		s.addLeftoverLocked(c)
	}
	maps.DeleteFunc(s.crowds, func(_ string, c crowd) bool { return !c.until.After(now) })
	s.armed = now.Add(time.Hour)
	if len(s.schedule) > 0 && s.schedule[0].until.Before(s.armed) {
		s.armed = s.schedule[0].until
	}
	next = s.armed.Sub(now)
	s.mu.Unlock()
	s.reportLost(over, errRanOut)
	return next
}

// take removes the longest waiting claims from s.leftovers, and returns their removals.
func (s *Store) take() (some []*removal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A Release may have been faster. The id may have a new claim by now.
	s.leftovers = slices.DeleteFunc(s.leftovers, func(c *claim) bool { return s.table[c.ID] != c })
	n := min(len(s.leftovers), eraseBatch)
	for _, c := range s.leftovers[:n] {
		r := driver.Release{Claim: driver.Claim{Key: c.key, ID: c.ID}, Late: c.late}
		some = append(some, &removal{Release: r, claim: c, own: true, name: c.onlyName()})
	}
	s.leftovers = slices.Delete(s.leftovers, 0, n)
	return some
}

// clean removes leftovers from etcd. Claims whose removal fails go to the end of
// s.leftovers, and wait there for the next attempt.
func (s *Store) clean(some []*removal) error {
	ctx, cancel := context.WithTimeout(s.ctx, callLimit)
	defer cancel()
	s.erase(ctx, some)
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, r := range some {
		errs = append(errs, r.err)
		switch {
		case s.table[r.ID] != r.claim: // A Release was faster.
		case r.err != nil, r.claim.late && !r.Late: // A Release has asked for a tomb meanwhile.
			s.leftovers = append(s.leftovers, r.claim)
		default:
			s.dropLocked(r.claim)
		}
	}
	return errors.Join(errs...)
}
