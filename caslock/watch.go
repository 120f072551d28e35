package caslock

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/book"
	"github.com/holdfast-go/holdfast/internal/pace"
	"github.com/holdfast-go/holdfast/internal/rest"
)

// A watch waits until a request for a claim may succeed.
type watch struct {
	claim driver.Claim
	wake  func(driver.Grant)

	held, queued bool // on the page that was last looked at
}

// Watch implements [driver.Watcher]. A wake-up never brings a grant: the next Acquire
// confirms a claim that was granted from the queue.
func (s *Store) Watch(ctx context.Context, c driver.Claim, wake func(driver.Grant)) (stop func(), err error) {
	d, err := s.enter(c.Key)
	if err != nil {
		return nil, err
	}
	w := &watch{claim: c, wake: wake}
	stop = func() {
		if d.remove(w) {
			s.leave(d)
		}
	}
	if err := d.lock(ctx); err != nil {
		s.leave(d)
		return nil, err
	}
	defer d.unlock()
	if d.add(w) {
		return stop, nil
	}
	if err := s.follow(ctx, d); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// follow begins to follow the record of a key. Only the holder of the desk's lock calls follow.
func (s *Store) follow(ctx context.Context, d *desk) error {
	if s.watcher == nil {
		s.mu.Lock() // Close waits for the lookers that have begun by then.
		defer s.mu.Unlock()
		if s.desks == nil {
			return errClosed
		}
		looking, cancel := context.WithCancel(s.closing)
		s.lookers.Go(func() { s.looks(looking, d) })
		d.follows(cancel, false)
		return nil
	}
	stop, err := s.watcher.Watch(ctx, d.key, func(r Record) { s.changed(d, r) })
	if err != nil {
		return err
	}
	d.follows(stop, true)
	if s.closing.Err() != nil { // Close may have looked before.
		d.unfollow(true)
		return errClosed
	}
	return nil
}

// changed notes a record, and wakes the claims for which the record is good news.
func (s *Store) changed(d *desk, r Record) {
	if r.Version != "" {
		if _, err := d.learn(r, s.now()); err == nil {
			s.observe(d)
			return
		}
	}
	// The record was removed, or cannot be read. The requests of the waiters tell which.
	d.conflicts()
	for _, w := range d.waiting() {
		w.wake(driver.Grant{})
	}
}

// observe wakes the claims that the known page lets in.
func (s *Store) observe(d *desk) {
	for _, w := range d.due(book.Moment{Now: s.now(), Wall: time.Now().UnixMicro()}) {
		w.wake(driver.Grant{})
	}
}

// longestLook is the longest read of a goroutine that looks for waiters.
const longestLook = time.Second

// looks reads the record of a key for the waiters of this process, until ctx ends.
func (s *Store) looks(ctx context.Context, d *desk) {
	for rest.For(ctx, pace.Spread(d.pause(s.look))) == nil {
		read, cancel := context.WithTimeout(ctx, longestLook)
		r, err := s.register.Read(read, d.key)
		cancel()
		if err == nil && ctx.Err() == nil {
			s.changed(d, r)
		}
	}
}

// add adds a watch, and reports whether this process follows the record already.
func (d *desk) add(w *watch) (followed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches = append(d.watches, w)
	return d.stop != nil
}

// follows notes how to stop following the record. The last watch may have gone by now.
func (d *desk) follows(stop func(), pushing bool) {
	d.mu.Lock()
	d.stop, d.pushing = stop, pushing
	d.mu.Unlock()
	d.unfollow(false)
}

// remove removes a watch, and reports whether the watch was there.
func (d *desk) remove(w *watch) bool {
	d.mu.Lock()
	i := slices.Index(d.watches, w)
	if i >= 0 {
		d.watches = slices.Delete(d.watches, i, i+1)
	}
	d.mu.Unlock()
	d.unfollow(false)
	return i >= 0
}

// unfollow stops following the record if there is no watch. always stops in any case.
func (d *desk) unfollow(always bool) {
	d.mu.Lock()
	if !always && len(d.watches) > 0 {
		d.mu.Unlock()
		return
	}
	stop := d.stop
	d.stop, d.pushing = nil, false
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (d *desk) waiting() []*watch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.watches)
}

// due returns the watches of claims for which a request may succeed: the claims that were
// granted, that can be granted because a claim has expired, and that have lost their place.
func (d *desk) due(m book.Moment) (list []*watch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.watches) == 0 || d.known == nil {
		return nil
	}
	v := d.viewLocked(d.known, d.version)
	v.open(m)
	held, queued := ids(v.book.Held), ids(v.book.Queue)
	v.book.Prune(m, func(string) bool { return true }) // drops the expired claims, and grants
	granted := ids(v.book.Held)
	for _, w := range d.watches {
		was := *w
		w.held, w.queued = held[w.claim.ID], queued[w.claim.ID]
		switch {
		case w.held:
			if was.held {
				continue
			}
		case w.queued:
			if !granted[w.claim.ID] {
				continue
			}
		case !was.queued:
			if g, err := v.clone().book.Acquire(m, driver.Ask{Claim: w.claim}, ""); err == nil && !g.OK {
				continue
			}
		}
		list = append(list, w)
	}
	return list
}

func ids(entries []book.Entry) map[string]bool {
	set := make(map[string]bool, len(entries))
	for i := range entries {
		set[entries[i].ID] = true
	}
	return set
}

// pause is the pause until the next look at the record, for the first of the waiters.
func (d *desk) pause(look time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	shortest := time.Duration(0)
	for _, w := range d.watches {
		place := 0
		if d.known != nil {
			if place = slices.IndexFunc(d.known.Queue, func(c claim) bool { return c.ID == w.claim.ID }); place < 0 {
				place = len(d.known.Queue)
			}
		}
		if p := pause(look, place, w.claim.TTL); shortest == 0 || p < shortest {
			shortest = p
		}
	}
	return max(shortest, time.Millisecond)
}
